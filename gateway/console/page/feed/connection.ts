/** What is known of the connection, in the order in which it goes. */
export type Link =
  /** There is neither a demo nor a key. */
  | { readonly kind: 'locked' }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** @param untilMs of this machine's clock */
  | { readonly kind: 'waiting'; readonly untilMs: number; readonly reason: string }
  /** It does not come back by itself. @param isRefused another key may be let in */
  | { readonly kind: 'closed'; readonly reason: string; readonly isRefused: boolean };

export interface Connection {
  readonly link: Link;
  /** When the last frame came, by this machine's clock; undefined: none has. */
  readonly heardMs: number | undefined;
  /** The log is away: nothing new can come. */
  readonly logAway: { readonly since: string | undefined } | undefined;
  /** Why no pill comes at all, although all works. */
  readonly quiet: string | undefined;
}

export const NOT_CONNECTED: Connection = {
  ...{ link: { kind: 'connecting' }, heardMs: undefined, logAway: undefined, quiet: undefined },
};

/** What the page says of it. */
export interface Told {
  readonly tone: 'good' | 'busy' | 'bad';
  readonly word: 'Live' | 'Connecting' | 'Reconnecting' | 'Stale' | 'Silent' | 'Offline' | 'Locked';
  readonly detail: string | undefined;
  /** Whole seconds until the next attempt; undefined: none is waited for. */
  readonly inS: number | undefined;
  /** What the rows show is what is so now, as far as anybody knows. */
  readonly isCurrent: boolean;
}

/** Heartbeats come every 5 s; later than this one is missing. */
export const SILENT_AFTER_MS = 6_500;

/** Puts a connection into words; it never says Live of one that nothing is heard of. */
export function tell({ link, heardMs, logAway, quiet }: Connection, nowMs: number): Told {
  const base = { detail: undefined, inS: undefined, isCurrent: false };
  switch (link.kind) {
    case 'locked':
      return { ...base, tone: 'busy', word: 'Locked' };
    case 'connecting':
      return { ...base, tone: 'busy', word: heardMs === undefined ? 'Connecting' : 'Reconnecting' };
    case 'waiting': {
      const inS = Math.max(0, Math.ceil((link.untilMs - nowMs) / 1_000));
      return { ...base, tone: 'bad', word: 'Reconnecting', detail: link.reason, inS };
    }
    case 'closed':
      return { ...base, tone: 'bad', word: 'Offline', detail: link.reason };
    case 'live': {
      if (nowMs - (heardMs ?? nowMs) > SILENT_AFTER_MS) {
        return { ...base, tone: 'bad', word: 'Silent', detail: 'Nothing is heard of the stream.' };
      }
      if (logAway !== undefined) {
        const since = logAway.since === undefined ? '' : ` since ${logAway.since}`;
        const detail = `The log is away${since}: new pills follow in order when it is back.`;
        return { ...base, tone: 'bad', word: 'Stale', detail };
      }
      return { ...base, tone: 'good', word: 'Live', detail: quiet, isCurrent: true };
    }
  }
}
