import type { ServerFrameType } from './frame-schemas.ts';

export interface FrameExamples {
  readonly summary: string;
  readonly examples: readonly Readonly<Record<string, unknown>>[];
}

const PILL = {
  cursor: '3-132',
  prev: '3-131',
  id: 'p-10',
  timestamp: '2026-11-20T01:02:03.004000Z',
  symbol: '7203.T',
  gross_spread_percent: 0.1261,
  market_state: 'open',
  confidence: 0.88,
  received_at: '2026-11-20T01:02:03.011000Z',
};
const LATE = {
  ...PILL,
  cursor: '0-91',
  prev: '0-90',
  id: 'p-12',
  timestamp: '2026-11-20T01:01:58.000000Z',
  symbol: '0700.HK',
  late: true,
};
const POSITION = 'k7f3:0-90,3-131';

/** What each frame of the server is for, and how it looks. */
export const SERVER_FRAME_EXAMPLES: Readonly<Record<ServerFrameType, FrameExamples>> = {
  welcome: {
    summary: 'The first frame: whose connection it is, and its limits.',
    examples: [
      {
        type: 'welcome',
        version: '1.0',
        session: 's_8f2c4d01a7b3',
        account: 'acc_41',
        tier: 'pro',
        epoch: 'k7f3',
        time: '2026-11-20T01:02:03.000000Z',
        heartbeat_ms: 5_000,
        limits: {
          connections: 20,
          symbols: 1_000,
          frames_in_per_s: 5,
          frame_in_bytes: 4_096,
          queue_bytes: 1_048_576,
          resume_max_age_s: 86_400,
        },
      },
    ],
  },
  subscribed: {
    summary: 'The answer to `subscribe`; the replay or the snapshot follows, then `live`.',
    examples: [
      {
        type: 'subscribed',
        id: '1',
        accepted: ['7203.T', '0700.HK'],
        rejected: [{ symbol: '0700 HK', code: 'symbol_malformed' }],
        never_seen: [],
        mode: 'all',
        recovered: true,
        reason: null,
        replaying: 312,
        position: POSITION,
      },
      {
        type: 'subscribed',
        id: '1',
        accepted: ['7203.T'],
        rejected: [],
        never_seen: [],
        mode: 'all',
        recovered: false,
        reason: 'position_expired',
        oldest: 'k7f3:0-80,3-120',
        replaying: 0,
        position: POSITION,
      },
    ],
  },
  snapshot: {
    summary: 'The newest pill of each symbol; in several frames where it is long.',
    examples: [
      {
        type: 'snapshot',
        id: '1',
        pills: [{ ...PILL, cursor: '3-131', last_cursor: '3-131', prev: '3-120', id: 'p-9' }],
        last: true,
        position: POSITION,
      },
    ],
  },
  live: {
    summary: 'The replay or the snapshot is done: new pills follow.',
    examples: [{ type: 'live', id: '1', replayed: 312, position: POSITION }],
  },
  pill: {
    summary: 'A new pill.',
    examples: [{ type: 'pill', ...PILL, sent_at: '2026-11-20T01:02:03.014000Z' }],
  },
  pills: {
    summary: 'Several new pills of one moment.',
    examples: [{ type: 'pills', sent_at: '2026-11-20T01:02:03.019000Z', pills: [PILL, LATE] }],
  },
  gap: {
    summary: 'Pills that this connection did not get and will not get, and the call that has them.',
    examples: [
      {
        type: 'gap',
        symbols: ['7203.T'],
        after: '3-104',
        until: '3-130',
        reason: 'position_expired',
        fill: '/api/pills?symbol=7203.T&epoch=k7f3&after=3-104&until=3-130&grant=…',
        fill_free: true,
      },
    ],
  },
  quiet: {
    summary: 'Why no pill comes, and until when.',
    examples: [
      {
        type: 'quiet',
        symbol: '7203.T',
        venue: 'XTKS',
        reason: 'lunch_break',
        since: '2026-11-20T02:30:00.000000Z',
        until: '2026-11-20T03:30:00.000000Z',
      },
    ],
  },
  heartbeat: {
    summary: 'Every 5 s at the latest, under load too: what has been sent, and what waits.',
    examples: [
      {
        type: 'heartbeat',
        time: '2026-11-20T01:02:08.000000Z',
        position: 'k7f3:0-95,3-140',
        sent: 10_412,
        filtered: 311,
        skipped: 0,
        queue_bytes: 0,
        queue_ms: 0,
        generator: {
          state: 'alive',
          last_received_at: '2026-11-20T01:02:07.880000Z',
          age_ms: 120,
          late_after_ms: 5_000,
          in_session: true,
        },
      },
    ],
  },
  status: {
    summary: 'The log went away or came back; the connection goes on.',
    examples: [
      {
        type: 'status',
        time: '2026-11-20T01:05:00.000000Z',
        component: 'log',
        state: 'down',
        code: 'log_unreachable',
        since: '2026-11-20T01:04:58.000000Z',
        until: null,
        message: 'New pills cannot arrive. Nothing is lost; they follow in order.',
      },
    ],
  },
  drain: {
    summary: 'This instance stops: connect again, and resume from the position.',
    examples: [
      {
        type: 'drain',
        reason: 'shutdown',
        grace_ms: 2_500,
        reconnect_after_ms: 1_370,
        position: 'k7f3:0-95,3-140',
      },
    ],
  },
  unsubscribed: {
    summary: 'The answer to `unsubscribe`.',
    examples: [{ type: 'unsubscribed', id: '3', symbols: ['0700.HK'], remaining: 1 }],
  },
  pong: {
    summary: 'The answer to `ping`.',
    examples: [
      { type: 'pong', id: '4', t: 1_763_600_000_123, time: '2026-11-20T01:02:03.002000Z' },
    ],
  },
  error: {
    summary: 'What was wrong; where it is fatal, the connection ends by it.',
    examples: [
      {
        type: 'error',
        id: '5',
        code: 'unknown_op',
        message: 'No op "subscrib". Known: auth, subscribe, unsubscribe, ping.',
        fatal: false,
      },
      {
        type: 'error',
        code: 'slow_consumer',
        message: '1 MiB waited unread.',
        fatal: true,
        close: 4001,
        retry_after_ms: 500,
        position: 'k7f3:0-60,3-99',
      },
      {
        type: 'error',
        code: 'connection_limit',
        message: '20 of 20 connections are open.',
        fatal: true,
        close: 4508,
        limit: 20,
        sessions: [
          {
            session: 's_71c0',
            since: '2026-11-20T00:00:12.000000Z',
            address: '203.0.113.7',
            key: 'pil_live_…ab12',
            queue_ms: 0,
          },
        ],
      },
    ],
  },
};
