import { expect, test } from 'vitest';
import {
  type Connection,
  describeConnection,
  type LinkState,
  SILENT_AFTER_MS,
} from './connection-state.ts';

const at = (link: LinkState, more: Partial<Connection> = {}): Connection => ({
  link,
  lastFrameMs: 1_000,
  logAway: undefined,
  quiet: undefined,
  ...more,
});
const live: LinkState = { kind: 'live' };
const AWAY = 'The platform’s log is unavailable since 12:00:00: new pills will follow in order.';
const waiting: LinkState = { kind: 'waiting', untilMs: 4_500, reason: 'The connection was lost.' };

test.each<[Connection, number, string, string | undefined, boolean]>([
  [at({ kind: 'connecting' }, { lastFrameMs: undefined }), 1_000, 'Connecting', undefined, false],
  [at({ kind: 'connecting' }), 1_000, 'Reconnecting', undefined, false],
  [at({ kind: 'locked' }), 1_000, 'Locked', undefined, false],
  [at(waiting), 1_000, 'Reconnecting', 'The connection was lost.', false],
  [
    at({ kind: 'closed', reason: 'Why.', code: 'why', isRefused: false }),
    1_000,
    'Offline',
    'Why.',
    false,
  ],
  [at(live), 1_000, 'Live', undefined, true],
  [at(live, { quiet: 'No pill since 12:00:00.' }), 1_000, 'Live', 'No pill since 12:00:00.', true],
  [at(live), 1_000 + SILENT_AFTER_MS, 'Live', undefined, true],
  [at(live), 1_001 + SILENT_AFTER_MS, 'Silent', 'No data from the stream.', false],
  [at(live, { logAway: { since: '12:00:00' } }), 1_000, 'Stale', AWAY, false],
])('%j at %i: %s', (connection, nowMs, word, detail, isCurrent) => {
  expect(describeConnection(connection, nowMs)).toMatchObject({ word, detail, isCurrent });
});

test('the seconds until the next attempt are rounded up, and never negative', () => {
  expect(describeConnection(at(waiting), 1_000).inS).toBe(4);
  expect(describeConnection(at(waiting), 4_499).inS).toBe(1);
  expect(describeConnection(at(waiting), 9_000).inS).toBe(0);
});
