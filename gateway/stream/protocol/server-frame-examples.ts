import { PUBLIC_PILL_EXAMPLE } from '../../../schemas/public-pill.ts';
import type { ServerFrame, ServerFrameType } from './server-frame-schemas.ts';

const PILL = PUBLIC_PILL_EXAMPLE;
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

const show = <F>(summary: string, ...examples: F[]) => ({ summary, examples });

/** The purpose of each server frame, and examples. */
export const SERVER_FRAME_EXAMPLES: {
  readonly [T in ServerFrameType]: ReturnType<typeof show<ServerFrame<T>>>;
} = {
  welcome: show('The first frame: account, session and limits of the connection.', {
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
  }),
  subscribed: show(
    'Answers `subscribe`; the replay or the snapshot follows, then `live`.',
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
  ),
  snapshot: show('The newest pill of each symbol; a long snapshot spans several frames.', {
    type: 'snapshot',
    id: '1',
    pills: [{ ...PILL, cursor: '3-131', last_cursor: '3-131', prev: '3-120', id: 'p-9' }],
    last: true,
    position: POSITION,
  }),
  live: show('The replay or the snapshot is complete; new pills follow.', {
    type: 'live',
    id: '1',
    replayed: 312,
    position: POSITION,
  }),
  pill: show('A new pill.', { type: 'pill', ...PILL, sent_at: '2026-11-20T01:02:03.014000Z' }),
  pills: show('Several new pills sent together.', {
    type: 'pills',
    sent_at: '2026-11-20T01:02:03.019000Z',
    pills: [PILL, LATE],
  }),
  gap: show(
    'Pills that this connection has missed for good, and the REST call that returns them.',
    {
      type: 'gap',
      symbols: ['7203.T'],
      after: '3-104',
      until: '3-130',
      reason: 'position_expired',
      fill: '/api/pills?symbol=7203.T&epoch=k7f3&after=3-104&until=3-130&grant=…',
      fill_free: true,
    },
  ),
  quiet: show('Why no pills arrive, and until when.', {
    type: 'quiet',
    symbol: '7203.T',
    venue: 'XTKS',
    reason: 'lunch_break',
    since: '2026-11-20T02:30:00.000000Z',
    until: '2026-11-20T03:30:00.000000Z',
  }),
  heartbeat: show(
    'At least every 5 s, even under load: what has been sent and what is still queued.',
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
  ),
  status: show('The log became unreachable or reachable again; the connection stays open.', {
    type: 'status',
    time: '2026-11-20T01:05:00.000000Z',
    component: 'log',
    state: 'down',
    code: 'log_unreachable',
    since: '2026-11-20T01:04:58.000000Z',
    until: null,
    message: 'New pills cannot arrive. None is lost; they follow in order.',
  }),
  drain: show('This instance is stopping: connect again and resume from the position.', {
    type: 'drain',
    reason: 'shutdown',
    grace_ms: 2_500,
    reconnect_after_ms: 1_370,
    position: 'k7f3:0-95,3-140',
  }),
  unsubscribed: show('Answers `unsubscribe`.', {
    type: 'unsubscribed',
    id: '3',
    symbols: ['0700.HK'],
    remaining: 1,
  }),
  pong: show('Answers `ping`.', {
    type: 'pong',
    id: '4',
    t: 1_763_600_000_123,
    time: '2026-11-20T01:02:03.002000Z',
  }),
  error: show(
    'An error; a fatal one ends the connection.',
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
      message: 'More than 1 MiB was queued unread. Read faster, or subscribe to fewer symbols.',
      fatal: true,
      close: 4001,
      retry_after_ms: 500,
      position: 'k7f3:0-60,3-99',
    },
    {
      type: 'error',
      code: 'connection_limit',
      message: '20 of 20 connections are open. Close one first.',
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
  ),
};
