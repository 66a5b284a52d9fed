import { expect, test } from 'vitest';
import { silentLog } from '../../../lib/log/log.ts';
import type { LatestPill } from '../log/latest-pills.ts';
import { createResumeWindow, type ResumeWindowDeps } from './resume-window.ts';

const NOW_MS = 1_000_000_000;
const DAY_MS = 86_400_000;

function windowOf(one: Partial<ResumeWindowDeps>) {
  return createResumeWindow({
    ...{ latestPills: { rows: () => [] }, maxAgeS: 86_400, nowMs: () => NOW_MS, log: silentLog },
    offsetsAt: async () => new Map([[0, 500]]),
    bounds: async () => new Map([[0, { low: 0, high: 900 }]]),
    ...one,
  });
}
const row = (partition: number, offset: number, agoMs: number) =>
  ({ partition, offset, receivedAt: (NOW_MS - agoMs) * 1000 }) as LatestPill;

test('covers everything after the first record of the window, and nothing before the first refresh', async () => {
  const asked: number[] = [];
  const window = windowOf({
    offsetsAt: async (timeMs) => {
      asked.push(timeMs);
      return new Map([[0, 500]]);
    },
  });
  expect(window.covers(0, 899)).toBe(false);
  await window.refresh();
  expect(asked).toEqual([NOW_MS - DAY_MS]);
  const covered = [-1, 498, 499, 899].map((after) => window.covers(0, after));
  expect(covered).toEqual([false, false, true, true]);
  expect(window.covers(1, 899)).toBe(false);
});

test('covers a log younger than the window from its beginning', async () => {
  const window = windowOf({ offsetsAt: async () => new Map([[0, 0]]) });
  await window.refresh();
  expect(window.covers(0, -1)).toBe(true);
});

test('covers a log truncated inside the window from after its last known old pill', async () => {
  const rows = [
    row(0, 120, DAY_MS + 1),
    row(0, 80, 2 * DAY_MS),
    row(0, 700, 5),
    row(1, 400, DAY_MS * 2),
  ];
  const window = windowOf({
    latestPills: { rows: () => rows },
    offsetsAt: async () => new Map([[0, 600]]),
    bounds: async () => new Map([[0, { low: 600, high: 900 }]]),
  });
  await window.refresh();
  expect([119, 120].map((after) => window.covers(0, after))).toEqual([false, true]);
});

test('keeps the previous window if a refresh fails', async () => {
  let isAway = false;
  const window = windowOf({
    offsetsAt: async () => {
      if (isAway) throw new Error('away');
      return new Map([[0, 500]]);
    },
  });
  await window.refresh();
  isAway = true;
  await window.refresh();
  expect([window.covers(0, 498), window.covers(0, 499)]).toEqual([false, true]);
});
