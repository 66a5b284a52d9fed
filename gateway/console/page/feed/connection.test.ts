import { expect, test } from 'vitest';
import { type Connection, type Link, SILENT_AFTER_MS, tell } from './connection.ts';

const at = (link: Link, more: Partial<Connection> = {}): Connection => ({
  ...{ link, heardMs: 1_000, logAway: undefined, quiet: undefined },
  ...more,
});
const live: Link = { kind: 'live' };
const AWAY = 'The log is away since 12:00:00: new pills follow in order when it is back.';
const waiting: Link = { kind: 'waiting', untilMs: 4_500, reason: 'The connection was lost.' };

test.each<[Connection, number, string, string | undefined, boolean]>([
  [at({ kind: 'connecting' }, { heardMs: undefined }), 1_000, 'Connecting', undefined, false],
  [at({ kind: 'connecting' }), 1_000, 'Reconnecting', undefined, false],
  [at({ kind: 'locked' }), 1_000, 'Locked', undefined, false],
  [at(waiting), 1_000, 'Reconnecting', 'The connection was lost.', false],
  [at({ kind: 'closed', reason: 'Why.', isRefused: false }), 1_000, 'Offline', 'Why.', false],
  [at(live), 1_000, 'Live', undefined, true],
  [at(live, { quiet: 'No pill since 12:00:00.' }), 1_000, 'Live', 'No pill since 12:00:00.', true],
  [at(live), 1_000 + SILENT_AFTER_MS, 'Live', undefined, true],
  [at(live), 1_001 + SILENT_AFTER_MS, 'Silent', 'Nothing is heard of the stream.', false],
  [at(live, { logAway: { since: '12:00:00' } }), 1_000, 'Stale', AWAY, false],
])('%j at %i: %s', (connection, nowMs, word, detail, isCurrent) => {
  expect(tell(connection, nowMs)).toMatchObject({ word, detail, isCurrent });
});

test('the seconds until the next attempt are counted up, never below none', () => {
  expect(tell(at(waiting), 1_000).inS).toBe(4);
  expect(tell(at(waiting), 4_499).inS).toBe(1);
  expect(tell(at(waiting), 9_000).inS).toBe(0);
});
