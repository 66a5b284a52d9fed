import type { Pill, SnapshotPill } from '../rest/responses.ts';
import type { ScriptedConnection } from './scripted-server.ts';

/** A pill of `7203.T` at an offset of partition 0. @param prev offset of the previous pill */
export function pillAt(offset: number, prev: number | null, fields: Partial<Pill> = {}): Pill {
  return {
    cursor: `0-${offset}`,
    prev: prev === null ? null : `0-${prev}`,
    id: `p-${offset}`,
    timestamp: '2026-11-20T01:02:03.000000Z',
    symbol: '7203.T',
    gross_spread_percent: 0.125,
    market_state: 'open',
    confidence: 88,
    received_at: '2026-11-20T01:02:03.010000Z',
    ...fields,
  };
}

export const snapshotPill = (offset: number, fields: Partial<Pill> = {}): SnapshotPill => ({
  ...pillAt(offset, null, fields),
  last_cursor: `0-${offset}`,
});

export const pillFrame = (...of: Parameters<typeof pillAt>) => ({ type: 'pill', ...pillAt(...of) });

export function welcome(fields: object = {}) {
  return {
    type: 'welcome',
    version: '1.0',
    session: 's_1',
    account: 'acc_1',
    tier: 'pro',
    epoch: 'e1',
    time: '2026-11-20T01:02:03.000000Z',
    heartbeat_ms: 5_000,
    limits: { frame_in_bytes: 4_096 },
    ...fields,
  };
}

export function heartbeat(position: string, state = 'alive') {
  return {
    type: 'heartbeat',
    time: '2026-11-20T01:02:03.000000Z',
    position,
    sent: 0,
    filtered: 0,
    skipped: 0,
    queue_bytes: 0,
    queue_ms: 0,
    generator: { state, last_received_at: null, age_ms: null },
  };
}

/** Answers one subscribe frame, from `welcome` to `live`. @returns the subscribe frame */
export async function sendHandover(
  connection: ScriptedConnection,
  position: string,
  options: {
    snapshot?: readonly SnapshotPill[];
    welcome?: object;
    between?: readonly object[];
    subscribed?: object;
  } = {},
) {
  await connection.next('auth');
  connection.send(welcome(options.welcome));
  const asked = await connection.next('subscribe');
  const { id, symbols } = asked;
  connection.send(
    {
      type: 'subscribed',
      id,
      accepted: symbols,
      rejected: [],
      never_seen: [],
      mode: 'all',
      recovered: null,
      reason: null,
      replaying: 0,
      position,
      ...options.subscribed,
    },
    ...(options.snapshot === undefined
      ? []
      : [{ type: 'snapshot', id, pills: options.snapshot, last: true, position }]),
    ...(options.between ?? []),
    { type: 'live', id, replayed: 0, position },
  );
  return asked;
}
