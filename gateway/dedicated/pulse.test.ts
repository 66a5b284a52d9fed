import { expect, test } from 'vitest';
import { createPulse } from './pulse.ts';

const LIMITS = { startingCountsMs: 10_000, silentMaxMs: 20_000, stuckMaxMs: 60_000 };
const offsets = (read: number) => [[0, read]] as const;

function create() {
  let nowMs = 1_000;
  const pulse = createPulse(LIMITS, () => nowMs);
  const after = (ms: number) => {
    nowMs += ms;
    return pulse;
  };
  return { pulse, after };
}

test('before a process was started, and after it was given up, there is nothing to kill', () => {
  const { pulse, after } = create();
  expect(after(1e9).isDead()).toBe(false);
  pulse.started();
  expect(after(LIMITS.stuckMaxMs).isDead()).toBe(true);
  expect(pulse.isDead()).toBe(false);
  pulse.started();
  expect(pulse.isDead()).toBe(false);
  expect(after(LIMITS.stuckMaxMs).isDead()).toBe(true);
});

test('one that answers and never gets ready is dead, and holds nobody up before that', () => {
  const { pulse, after } = create();
  pulse.started();
  for (let s = 1; s < 60; s += 1) {
    after(1_000).heard({ notReady: 'reading', offsets: offsets(7) });
    expect(pulse.isDead()).toBe(false);
    expect(pulse.isStarting()).toBe(s < 10);
  }
  // The first report told that it had got somewhere.
  expect(after(2_000).isDead()).toBe(true);
});

test('one that gets on with a long log lives', () => {
  const { pulse, after } = create();
  pulse.started();
  for (let s = 1; s < 600; s += 1) {
    after(1_000).heard({ notReady: 'reading', offsets: offsets(Math.floor(s / 50)) });
    expect(pulse.isDead()).toBe(false);
  }
});

test('one that serves lives while it answers, whether pills come or not', () => {
  const { pulse, after } = create();
  pulse.started();
  for (let s = 1; s < 600; s += 1) after(1_000).heard({ notReady: undefined, offsets: offsets(7) });
  expect(pulse.isDead()).toBe(false);
  expect(pulse.isStarting()).toBe(false);
  expect(after(LIMITS.silentMaxMs - 1).isDead()).toBe(false);
  expect(after(1).isDead()).toBe(true);
});
