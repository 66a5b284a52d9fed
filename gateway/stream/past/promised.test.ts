import { expect, test } from 'vitest';
import { silentLog } from '../../../lib/log.ts';
import type { Row } from './board.ts';
import { createPromised, type PromisedOptions } from './promised.ts';

const NOW_MS = 1_000_000_000;
const DAY_MS = 86_400_000;

function promisedOf(one: Partial<PromisedOptions>) {
  return createPromised({
    ...{ board: { rows: () => [] }, maxAgeS: 86_400, nowMs: () => NOW_MS, log: silentLog },
    offsetsAt: async () => new Map([[0, 500]]),
    bounds: async () => new Map([[0, { low: 0, high: 900 }]]),
    ...one,
  });
}
const row = (partition: number, offset: number, agoMs: number) =>
  ({ partition, offset, receivedAt: (NOW_MS - agoMs) * 1000 }) as Row;

test('from the first record within the time on; nothing before it was asked, or of others', async () => {
  const asked: number[] = [];
  const promised = promisedOf({
    offsetsAt: async (timeMs) => {
      asked.push(timeMs);
      return new Map([[0, 500]]);
    },
  });
  expect(promised.covers(0, 899)).toBe(false);
  await promised.refresh();
  expect(asked).toEqual([NOW_MS - DAY_MS]);
  const covered = [-1, 498, 499, 899].map((after) => promised.covers(0, after));
  expect(covered).toEqual([false, false, true, true]);
  expect(promised.covers(1, 899)).toBe(false);
});

test('a log that is younger than that is covered from its beginning', async () => {
  const promised = promisedOf({ offsetsAt: async () => new Map([[0, 0]]) });
  await promised.refresh();
  expect(promised.covers(0, -1)).toBe(true);
});

test('a log cut within the time: what follows the last pill that is known to be old', async () => {
  const rows = [
    row(0, 120, DAY_MS + 1),
    row(0, 80, 2 * DAY_MS),
    row(0, 700, 5),
    row(1, 400, DAY_MS * 2),
  ];
  const promised = promisedOf({
    board: { rows: () => rows },
    offsetsAt: async () => new Map([[0, 600]]),
    bounds: async () => new Map([[0, { low: 600, high: 900 }]]),
  });
  await promised.refresh();
  expect([119, 120].map((after) => promised.covers(0, after))).toEqual([false, true]);
});

test('in vain what was known stands', async () => {
  let isAway = false;
  const promised = promisedOf({
    offsetsAt: async () => {
      if (isAway) throw new Error('away');
      return new Map([[0, 500]]);
    },
  });
  await promised.refresh();
  isAway = true;
  await promised.refresh();
  expect([promised.covers(0, 498), promised.covers(0, 499)]).toEqual([false, true]);
});
