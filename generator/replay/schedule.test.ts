import { describe, expect, it } from 'vitest';
import { createSchedule, dueBatches, type Pace, parsePace } from './schedule.ts';

describe('a pace', () => {
  it.each([
    ['', undefined],
    ['x', undefined],
    ['0x', undefined],
    ['-1x', undefined],
    ['1e3x', undefined],
    ['10', undefined],
    ['Infinityx', undefined],
    ['fast', 'fast'],
    ['recorded', 1],
    ['10x', 10],
    ['0.5x', 0.5],
  ])('"%s"', (text, pace) => {
    expect(parsePace(text)).toBe(pace);
  });
});

describe('a schedule', () => {
  const FIRST = 1_000_000_000_000;
  const SECOND = 1_000_000;
  const START = 5_000_000_000_000_000;
  const plan = (pace: Pace, time: 'now' | 'own', rows = 100, seconds = 100) =>
    createSchedule({
      pace,
      time,
      start: START,
      rows,
      first: FIRST,
      last: FIRST + seconds * SECOND,
    });

  it('keeps the distances of the file at the recorded pace', () => {
    const { dueMs, stamp } = plan(1, 'now');
    expect([dueMs(FIRST), dueMs(FIRST + 2.5 * SECOND)]).toEqual([0, 2_500]);
    expect(stamp(FIRST + 2.5 * SECOND)).toBe(START + 2.5 * SECOND);
  });

  it('divides distances by the factor, so that timestamps are times of sending', () => {
    const { dueMs, stamp } = plan(10, 'now');
    expect(dueMs(FIRST + 100 * SECOND)).toBe(10_000);
    expect(stamp(FIRST + 100 * SECOND)).toBe(START + 10 * SECOND);
  });

  it('keeps the file’s own times at any pace', () => {
    expect(plan('fast', 'own').stamp(FIRST + 7)).toBe(FIRST + 7);
    expect(plan(10, 'own').stamp(FIRST + 7)).toBe(FIRST + 7);
  });

  it('scales a fast run so that no pill is backfill or too far ahead for ingest', () => {
    const day = 86_400;
    for (const rows of [1, 100, 10_000, 1_000_000, 100_000_000]) {
      const { dueMs, stamp } = plan('fast', 'now', rows, day);
      expect(dueMs(FIRST + day * SECOND)).toBe(0);
      const ahead = stamp(FIRST + day * SECOND) - START;
      expect(stamp(FIRST)).toBe(START);
      expect(ahead).toBeGreaterThanOrEqual(0.99 * SECOND);
      expect(ahead).toBeLessThan(300 * SECOND);
    }
  });

  it('never stretches a short file', () => {
    const { stamp } = plan('fast', 'now', 2, 0.001);
    expect(stamp(FIRST + 1_000) - START).toBe(1_000);
  });
});

describe('due batches', () => {
  // Time advances only by sleeps and by the duration of sends.
  async function played(dues: readonly number[], batchMax: number, sendMs: number) {
    let now = 0;
    const clock = {
      elapsedMs: () => now,
      sleep: async (ms: number) => {
        now += ms;
      },
    };
    async function* rows() {
      yield* dues;
    }
    const sent: [at: number, batch: number[]][] = [];
    for await (const batch of dueBatches(rows(), (due) => due, batchMax, clock)) {
      sent.push([now, batch]);
      now += sendMs;
    }
    return sent;
  }

  it('no rows give no batches', async () => {
    expect(await played([], 10, 0)).toEqual([]);
  });

  it('each row is sent at its time when the service keeps up', async () => {
    expect(await played([0, 10, 20.5], 10, 1)).toEqual([
      [0, [0]],
      [10, [10]],
      [20.5, [20.5]],
    ]);
  });

  it('rows that fall due during a send go together, none early', async () => {
    expect(await played([0, 1, 2, 3, 50], 10, 10)).toEqual([
      [0, [0]],
      [10, [1, 2, 3]],
      [50, [50]],
    ]);
  });

  it('no batch exceeds its limit, and order is kept', async () => {
    const sent = await played([0, 0, 0, 0, 0], 2, 1);
    expect(sent.map(([, batch]) => batch.length)).toEqual([2, 2, 1]);
  });

  it('a row with an earlier time than its predecessor is sent at once', async () => {
    expect(await played([10, 5, 20], 10, 1)).toEqual([
      [10, [10, 5]],
      [20, [20]],
    ]);
  });

  it('a wait longer than a timer’s limit is split', async () => {
    expect(await played([3e9], 1, 0)).toEqual([[3e9, [3e9]]]);
  });
});
