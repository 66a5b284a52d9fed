import { expect, test } from 'vitest';
import { createLiveness } from './liveness.ts';

const LIMITS = { startingCountsMs: 10_000, silentMaxMs: 20_000, stuckMaxMs: 60_000 };
const offsets = (read: number) => [[0, read]] as const;

function create() {
  let nowMs = 1_000;
  const liveness = createLiveness(LIMITS, () => nowMs);
  const after = (ms: number) => {
    nowMs += ms;
    return liveness;
  };
  return { liveness, after };
}

test('no process is dead before the first start, or twice', () => {
  const { liveness, after } = create();
  expect(after(1e9).isDead()).toBe(false);
  liveness.onStart();
  expect(after(LIMITS.stuckMaxMs).isDead()).toBe(true);
  expect(liveness.isDead()).toBe(false);
  liveness.onStart();
  expect(liveness.isDead()).toBe(false);
  expect(after(LIMITS.stuckMaxMs).isDead()).toBe(true);
});

test('a process that answers but makes no progress is dead, and no longer delays other starts before then', () => {
  const { liveness, after } = create();
  liveness.onStart();
  for (let s = 1; s < 60; s += 1) {
    after(1_000).onReport({ notReady: 'reading', offsets: offsets(7) });
    expect(liveness.isDead()).toBe(false);
    expect(liveness.isStarting()).toBe(s < 10);
  }
  // The first report showed progress.
  expect(after(2_000).isDead()).toBe(true);
});

test('a process that makes progress in a long log is alive', () => {
  const { liveness, after } = create();
  liveness.onStart();
  for (let s = 1; s < 600; s += 1) {
    after(1_000).onReport({ notReady: 'reading', offsets: offsets(Math.floor(s / 50)) });
    expect(liveness.isDead()).toBe(false);
  }
});

test('a serving process is alive while it answers, with or without pills', () => {
  const { liveness, after } = create();
  liveness.onStart();
  for (let s = 1; s < 600; s += 1)
    after(1_000).onReport({ notReady: undefined, offsets: offsets(7) });
  expect(liveness.isDead()).toBe(false);
  expect(liveness.isStarting()).toBe(false);
  expect(after(LIMITS.silentMaxMs - 1).isDead()).toBe(false);
  expect(after(1).isDead()).toBe(true);
});
