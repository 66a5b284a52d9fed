/** The phase of the connection. */
export type LinkState =
  /** Neither a demo nor a key. */
  | { readonly kind: 'locked' }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** Waits for the next attempt. `untilMs` is by this machine's clock. */
  | { readonly kind: 'waiting'; readonly untilMs: number; readonly reason: string }
  /** Does not reconnect by itself. `code`: of the error; `isRefused`: another key may help. */
  | {
      readonly kind: 'closed';
      readonly reason: string;
      readonly code: string;
      readonly isRefused: boolean;
    };

export interface Connection {
  readonly link: LinkState;
  /** When the last frame arrived, by this machine's clock; undefined before the first one. */
  readonly lastFrameMs: number | undefined;
  /** Set while the platform's log is unavailable, so that no new pills can arrive. */
  readonly logAway: { readonly since: string | undefined } | undefined;
  /** Why no pills arrive at all, although everything works. */
  readonly quiet: string | undefined;
}

export const NOT_CONNECTED: Connection = {
  link: { kind: 'connecting' },
  lastFrameMs: undefined,
  logAway: undefined,
  quiet: undefined,
};

/** The connection as the page describes it. */
export interface ConnectionText {
  readonly tone: 'good' | 'busy' | 'bad';
  readonly word: 'Live' | 'Connecting' | 'Reconnecting' | 'Stale' | 'Silent' | 'Offline' | 'Locked';
  readonly detail: string | undefined;
  /** Whole seconds until the next attempt; undefined if none is planned. */
  readonly inS: number | undefined;
  /** Whether the rows show the present market, as far as is known. */
  readonly isCurrent: boolean;
}

/** Heartbeats come every 5 s; after this time without a frame, one is missing. */
export const SILENT_AFTER_MS = 6_500;

/** Describes a connection; never as Live if no frames arrive. */
export function describeConnection(
  { link, lastFrameMs: heardMs, logAway, quiet }: Connection,
  nowMs: number,
): ConnectionText {
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
        return { ...base, tone: 'bad', word: 'Silent', detail: 'No data from the stream.' };
      }
      if (logAway !== undefined) {
        const since = logAway.since === undefined ? '' : ` since ${logAway.since}`;
        const detail = `The platform’s log is unavailable${since}: new pills will follow in order.`;
        return { ...base, tone: 'bad', word: 'Stale', detail };
      }
      return { ...base, tone: 'good', word: 'Live', detail: quiet, isCurrent: true };
    }
  }
}
