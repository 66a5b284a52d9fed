import { expect, it } from 'vitest';
import { dueCount, monotonicMicros, plannedMicros, runOpenLoop } from './open-loop.ts';

const plan = { startMicros: 1_000_000, perS: 1_000, pills: 5 };

it('a pill is due at start + i / rate, whatever happened to earlier pills', () => {
  expect([0, 1, 4].map((pill) => plannedMicros(plan, pill))).toEqual([1e6, 1_001_000, 1_004_000]);
});

it.each([
  [0, 0],
  [999_999, 0],
  [1_000_000, 1],
  [1_000_999, 1],
  [1_001_000, 2],
  [1_004_000, 5],
  [9_000_000, 5],
])('at %d µs %d pills are due', (now, due) => {
  expect(dueCount(plan, now)).toBe(due);
});

it.each([1_000, 5_000])(
  'at %d sends/s, each is due once, in order and never early',
  async (perS) => {
    const schedule = { startMicros: monotonicMicros() + 20_000, perS, pills: 100 };
    const sent: number[] = [];
    let early = 0;
    const onDue = (pill: number) => {
      sent.push(pill);
      if (monotonicMicros() < plannedMicros(schedule, pill)) early += 1;
    };
    const { count } = await runOpenLoop(schedule, onDue);
    expect(sent).toEqual(Array.from({ length: 100 }, (_, pill) => pill));
    expect([count, early]).toEqual([100, 0]);
  },
);
