import { createClient, type PilloleError } from '../../../../sdk/browser.ts';
import type { GapItem, Heartbeat, Pill, Quiet, Stream } from '../../../../sdk/exports.ts';
import { createPillRate } from '../market/pill-rate.ts';
import { createClock, localTime, microsOf } from '../market/platform-clock.ts';
import { createMarket } from '../market/symbol-rows.ts';
import { type Connection, NOT_CONNECTED } from './connection-state.ts';
import { followFacts } from './market-facts.ts';
import { createMarketReads, type MarketReads } from './market-reads.ts';
import { findViewer, readSettings, readTicket, type Settings, type Viewer } from './settings.ts';

/** Gaps that are kept for display; all gaps are counted. */
const GAPS_MAX = 20;
const SETTINGS_RETRY_MS = 3_000;
/** Close codes after which another key may help: unknown, revoked, too low a tier, address, ended. */
const KEY_REFUSED: ReadonlySet<number> = new Set([4501, 4502, 4503, 4509, 4510]);

/** Everything that the page shows. It changes in place; `onChange` is called after changes. */
export interface Feed {
  readonly market: ReturnType<typeof createMarket>;
  readonly clock: ReturnType<typeof createClock>;
  readonly pillRate: ReturnType<typeof createPillRate>;
  readonly connection: Connection;
  readonly gaps: { readonly count: number; readonly last: readonly ReceivedGap[] };
  /** Where the latencies of `pillRate` are measured. */
  readonly latencyTo: 'browser' | 'socket';
  /** Whether the browser has a session of the console; undefined while it is not known. */
  readonly hasSession: boolean | undefined;
  /** Reads besides the stream; undefined while it is not known as whom. */
  readonly reads: MarketReads | undefined;
  /** Watches with a key, which stays only in memory. */
  useKey(key: string): void;
  /** Reconnects at once, after a permanent end or during a long wait, and resumes. */
  retry(): void;
  /** Ends the feed for good. */
  close(): void;
}

export interface ReceivedGap extends GapItem {
  /** When the gap was received, by this machine's clock. */
  readonly atMs: number;
}

type FeedState = { -readonly [Key in keyof Feed]: Feed[Key] } & {
  readonly lastGaps: ReceivedGap[];
  key: string | undefined;
  change(part: Partial<Connection>): void;
};

/**
 * Opens the feed: as the given viewer, else with tickets of the demo if there is a demo, or of the
 * person who is signed in, otherwise once there is a key.
 * @param known read before each request, since a person who signs in again has another token
 */
export function openFeed(onChange: () => void, known?: () => Viewer): Feed {
  let settings: Settings | undefined;
  let stream: Stream | undefined;
  let retryTimer: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;
  const lastGaps: ReceivedGap[] = [];
  const state: FeedState = {
    market: createMarket(),
    clock: createClock(),
    pillRate: createPillRate(),
    connection: NOT_CONNECTED,
    lastGaps,
    gaps: { count: 0, last: lastGaps },
    // On one machine, the same clock measures both ends.
    latencyTo: isThisMachine(location.hostname) ? 'browser' : 'socket',
    key: undefined,
    reads: undefined,
    hasSession: undefined,
    change(part) {
      state.connection = { ...state.connection, ...part };
      onChange();
    },
    useKey(key) {
      state.key = key;
      state.market.clear();
      void start();
    },
    retry: () => void start(stream?.position),
    close() {
      isClosed = true;
      clearTimeout(retryTimer);
      stopFacts();
      stream?.close();
    },
  };

  const start = async (resume?: string) => {
    clearTimeout(retryTimer);
    stream?.close();
    stream = undefined;
    state.change({ link: { kind: 'connecting' } });
    settings ??= await readSettings(AbortSignal.timeout(SETTINGS_RETRY_MS)).catch(() => undefined);
    const found =
      known?.() ??
      (settings && (await findViewer(settings, state.key).catch(() => 'unknown' as const)));
    if (isClosed) return;
    state.hasSession = settings?.has_session;
    if (settings === undefined || found === 'unknown') {
      const reason = 'The API does not answer.';
      state.change({ link: { kind: 'waiting', untilMs: Date.now() + SETTINGS_RETRY_MS, reason } });
      retryTimer = setTimeout(start, SETTINGS_RETRY_MS, resume);
    } else if (found === undefined) state.change({ link: { kind: 'locked' } });
    else {
      const viewer = known ?? (() => found);
      state.reads = createMarketReads(viewer);
      stream = openFeedStream(state, { viewer, streamUrl: settings.stream_url, resume });
    }
  };
  void start();
  const stopFacts = followFacts(state.market, () => state.reads, onChange);
  return state;
}

function noteFrame(state: FeedState, serverTime?: string): void {
  const now = Date.now();
  if (serverTime !== undefined) state.clock.observe(microsOf(serverTime) / 1_000, now);
  state.change({ lastFrameMs: now });
}

function openFeedStream(
  state: FeedState,
  of: {
    readonly viewer: () => Viewer;
    readonly streamUrl: string;
    readonly resume: string | undefined;
  },
): Stream {
  const { market } = state;
  const { viewer, streamUrl, resume } = of;
  const first = viewer();
  const access = first.kind === 'key' ? { key: first.key } : { ticket: () => readTicket(viewer()) };
  const stream = createClient({ streamUrl, ...access }).stream({
    symbols: '*',
    // The page shows the present market: gaps are counted, but the missed pills are not requested.
    fillGaps: false,
    ...(resume === undefined ? {} : { resume }),
  });
  stream.on('open', () => {
    noteFrame(state);
    state.change({ link: { kind: 'live' } });
  });
  stream.on('snapshot', ({ pills, position }) => {
    const [epoch = ''] = position.split(':');
    for (const pill of pills) market.addSnapshotPill(pill, epoch);
    noteFrame(state);
  });
  stream.on('pill', (pill) => {
    market.addPill(pill);
    noteFrame(state, pill.sent_at);
    if (pill.replayed !== true) state.pillRate.add(Date.now(), latencyOf(pill, state.latencyTo));
  });
  stream.on('gap', (gap) => {
    const { lastGaps } = state;
    lastGaps.unshift({ ...gap, atMs: Date.now() });
    lastGaps.length = Math.min(lastGaps.length, GAPS_MAX);
    state.gaps = { count: state.gaps.count + 1, last: lastGaps };
    noteFrame(state);
  });
  followConnection(state, stream);
  return stream;
}

/** Keeps the state of the connection, and why no pills arrive. */
function followConnection(state: FeedState, stream: Stream): void {
  stream.on('heartbeat', (heartbeat) => {
    noteFrame(state, heartbeat.time);
    state.change(ofHeartbeat(heartbeat, state.connection));
  });
  stream.on('status', ({ component, state: health, since, time }) => {
    noteFrame(state, time);
    if (component !== 'log') return;
    state.change({ logAway: health === 'down' ? { since: timeOf(since) } : undefined });
  });
  stream.on('quiet', (quiet) => {
    state.market.setQuiet(quiet.symbol, reasonOf(quiet));
    noteFrame(state);
  });
  stream.on('reconnecting', ({ delayMs, error }) =>
    state.change({
      link: { kind: 'waiting', untilMs: Date.now() + delayMs, reason: textOf(error) },
    }),
  );
  stream.on('closed', ({ error }) => {
    if (error === undefined) return;
    const isRefused = state.key !== undefined && KEY_REFUSED.has(error.closeCode ?? 0);
    if (isRefused) state.key = undefined;
    state.change({ link: { kind: 'closed', reason: textOf(error), code: error.code, isRefused } });
  });
}

/** Covers `status` frames that were missed while there was no connection. */
function ofHeartbeat({ generator }: Heartbeat, { logAway }: Connection): Partial<Connection> {
  const { state, last_received_at: since } = generator;
  return {
    logAway: state === 'unknown' ? (logAway ?? { since: undefined }) : undefined,
    quiet: state === 'silent' ? `No pill since ${timeOf(since)}.` : undefined,
  };
}

/** "lunch break until 03:30:00"; undefined when the quiet is over. */
function reasonOf(quiet: Quiet): string | undefined {
  if (quiet.over === true) return undefined;
  const until = quiet.until === null ? '' : ` until ${timeOf(quiet.until)}`;
  return `${quiet.reason.replaceAll('_', ' ')}${until}`;
}

/** The latency of a pill in ms; undefined without `sent_at`. */
function latencyOf(pill: Pill, to: Feed['latencyTo']): number | undefined {
  if (pill.sent_at === undefined) return undefined;
  const endMs = to === 'browser' ? Date.now() : microsOf(pill.sent_at) / 1_000;
  return Math.max(0, endMs - microsOf(pill.received_at) / 1_000);
}

/** The client's message for a close without a reason contains only the code. */
function textOf({ code, message }: PilloleError): string {
  return code === 'connection_lost' ? 'The connection was lost.' : message;
}

function timeOf(iso: string | null): string {
  return iso === null ? 'ever' : localTime(Date.parse(iso));
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host);
}
