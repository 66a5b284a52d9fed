import { createClient, type PilloleError } from '../../../../sdk/browser.ts';
import type {
  GapItem,
  Heartbeat,
  Pill,
  Quiet,
  StatusFrame,
  Stream,
} from '../../../../sdk/types.ts';
import { type Clock, createClock } from '../market/clock.ts';
import { createMarket, type Market } from '../market/market.ts';
import { createPace, type Pace } from '../market/pace.ts';
import { localTime, microsOf } from '../market/time.ts';
import { type Connection, type Link, NOT_CONNECTED } from './connection.ts';
import { demoTicket, readSettings, type Settings } from './settings.ts';

/** Gaps that are kept to be read; all are counted. */
const GAPS_MAX = 20;
const SETTINGS_RETRY_MS = 3_000;
/** Close codes after which another key may help: unknown, revoked, too low a tier, address, ended. */
const KEY_REFUSED: ReadonlySet<number> = new Set([4501, 4502, 4503, 4509, 4510]);

/** All that the page shows; it changes in place, and `onChange` says when. */
export interface Feed {
  readonly market: Market;
  readonly clock: Clock;
  readonly pace: Pace;
  readonly connection: Connection;
  readonly gaps: { readonly count: number; readonly last: readonly ToldGap[] };
  /** What latencies of `pace` lead to. */
  readonly latencyTo: 'browser' | 'socket';
  /** Watches with a key, which stays in memory alone. */
  useKey(key: string): void;
  /** At once, after an end for good or during a long wait; goes on where it was. */
  retry(): void;
}

export interface ToldGap extends GapItem {
  /** When it was told, by this machine's clock. */
  readonly atMs: number;
}

const DEMO = { ticket: demoTicket } as const;

/** Opens the feed: with the demo's tickets where there is a demo, else it waits for a key. */
export function openFeed(onChange: () => void): Feed {
  const market = createMarket();
  const clock = createClock();
  const pace = createPace();
  const last: ToldGap[] = [];
  let count = 0;
  let connection = NOT_CONNECTED;
  let settings: Settings | undefined;
  let key: string | undefined;
  let stream: Stream | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  // On one machine both ends of the way are told by one clock.
  const latencyTo = isThisMachine(location.hostname) ? 'browser' : 'socket';

  const change = (part: Partial<Connection>) => {
    connection = { ...connection, ...part };
    onChange();
  };
  const setLink = (link: Link) => change({ link });
  const heard = (serverTime?: string) => {
    const now = Date.now();
    if (serverTime !== undefined) clock.note(microsOf(serverTime) / 1_000, now);
    change({ heardMs: now });
  };

  const start = async (resume?: string) => {
    clearTimeout(again);
    stream?.close();
    stream = undefined;
    setLink({ kind: 'connecting' });
    settings ??= await readSettings(AbortSignal.timeout(SETTINGS_RETRY_MS)).catch(() => undefined);
    if (settings === undefined) {
      const reason = 'The API does not answer.';
      setLink({ kind: 'waiting', untilMs: Date.now() + SETTINGS_RETRY_MS, reason });
      again = setTimeout(start, SETTINGS_RETRY_MS, resume);
    } else if (key === undefined && !settings.demo) setLink({ kind: 'locked' });
    else follow(settings, resume);
  };

  const follow = ({ stream_url: streamUrl }: Settings, resume: string | undefined) => {
    const client = createClient({ streamUrl, ...(key === undefined ? DEMO : { key }) });
    stream = client.stream({
      // What was missed is no market any more: gaps are told, and not asked for.
      ...{ symbols: '*', fillGaps: false },
      ...(resume === undefined ? {} : { resume }),
    });
    stream.on('open', () => {
      heard();
      setLink({ kind: 'live' });
    });
    stream.on('snapshot', ({ pills, position }) => {
      const [epoch = ''] = position.split(':');
      for (const pill of pills) market.show(pill, epoch);
      heard();
    });
    stream.on('pill', (pill) => {
      market.take(pill);
      heard(pill.sent_at);
      if (pill.replayed !== true) pace.note(Date.now(), latencyOf(pill, latencyTo));
    });
    stream.on('gap', (gap) => {
      count += 1;
      last.unshift({ ...gap, atMs: Date.now() });
      last.length = Math.min(last.length, GAPS_MAX);
      heard();
    });
    stream.on('heartbeat', (heartbeat) => {
      heard(heartbeat.time);
      change(ofHeartbeat(heartbeat, connection));
    });
    stream.on('status', (status) => {
      heard(status.time);
      change(ofStatus(status));
    });
    stream.on('quiet', (quiet) => {
      heard();
      market.quiet(quiet.symbol, reasonOf(quiet));
      onChange();
    });
    stream.on('reconnecting', ({ delayMs, error }) =>
      setLink({ kind: 'waiting', untilMs: Date.now() + delayMs, reason: wordsOf(error) }),
    );
    stream.on('closed', ({ error }) => {
      if (error === undefined) return;
      const isRefused = key !== undefined && KEY_REFUSED.has(error.closeCode ?? 0);
      if (isRefused) key = undefined;
      setLink({ kind: 'closed', reason: wordsOf(error), isRefused });
    });
  };

  void start();
  return {
    ...{ market, clock, pace, latencyTo },
    get connection() {
      return connection;
    },
    get gaps() {
      return { count, last };
    },
    useKey(given) {
      key = given;
      market.clear();
      void start();
    },
    retry: () => void start(stream?.position),
  };
}

/** It says what a `status` did that was missed while there was no connection. */
function ofHeartbeat({ generator }: Heartbeat, { logAway }: Connection): Partial<Connection> {
  const { state, last_received_at: since } = generator;
  return {
    logAway: state === 'unknown' ? (logAway ?? { since: undefined }) : undefined,
    quiet: state === 'silent' ? `No pill since ${timeOf(since)}.` : undefined,
  };
}

function ofStatus({ component, state, since }: StatusFrame): Partial<Connection> {
  if (component !== 'log') return {};
  return { logAway: state === 'down' ? { since: timeOf(since) } : undefined };
}

/** "lunch break until 03:30:00"; undefined when it is over. */
function reasonOf(quiet: Quiet & { readonly over?: true }): string | undefined {
  if (quiet.over === true) return undefined;
  const until = quiet.until === null ? '' : ` until ${timeOf(quiet.until)}`;
  return `${quiet.reason.replaceAll('_', ' ')}${until}`;
}

/** ms; undefined for a pill that does not say when it was sent. */
function latencyOf(pill: Pill, to: Feed['latencyTo']): number | undefined {
  if (pill.sent_at === undefined) return undefined;
  const endMs = to === 'browser' ? Date.now() : microsOf(pill.sent_at) / 1_000;
  return Math.max(0, endMs - microsOf(pill.received_at) / 1_000);
}

/** What the client says of a close that nobody gave a reason for is its code. */
function wordsOf({ code, message }: PilloleError): string {
  return code === 'connection_lost' ? 'The connection was lost.' : message;
}

function timeOf(iso: string | null): string {
  return iso === null ? 'ever' : localTime(Date.parse(iso));
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host);
}
