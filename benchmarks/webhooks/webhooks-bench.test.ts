import { describe, expect, test } from 'vitest';
import { createLatencies } from '../harness/histogram.ts';
import { countArrivals } from './arrivals.ts';
import { paceOf } from './drain.ts';
import { type Deliveries, deliveriesOf, isWhole, type WebhookRun } from './webhook-run.ts';
import { bestOf, isSustained, summariseNeighbours } from './webhooks-report.ts';

/** A pill every 100 ms from 1 s on; ingest answers 5 ms later. */
const PLAN = { startMicros: 1_000_000, perS: 10, pills: 3 };
const ANSWERS = [1_005_000, 1_105_000, 1_205_000];

/** Arrivals as `[message, pill, µs after its plan]`. */
function judge(
  arrivals: readonly (readonly [string, number, number])[],
  { answersMicros = ANSWERS, lateMicros = 1 } = {},
): Deliveries {
  const { arrivals: counts, take } = countArrivals({ run: 'w', pills: PLAN.pills });
  for (const [message, pill, after] of arrivals) {
    take(message, `{"id":"w-${pill}"}`, PLAN.startMicros + pill * 100_000 + after, true);
  }
  const lateness = createLatencies();
  lateness.record(lateMicros);
  const acknowledged = createLatencies().spread();
  const failed = answersMicros.flatMap((at, pill) => (at === 0 ? [pill] : []));
  const load = { acknowledged, lateness: lateness.percentiles(), failed, answersMicros };
  return deliveriesOf(PLAN, load, { endpoints: [counts], verified: 1, forged: 0 });
}

const ALL = [
  ['a', 0, 15_000],
  ['b', 1, 25_000],
  ['c', 2, 35_000],
] as const;

describe('the deliveries of a run', () => {
  test('latency counts from the planned send and from the answer', () => {
    const { sincePlanned, sinceAnswer } = judge(ALL);
    expect(Math.round(sincePlanned.p50 / 1_000)).toBe(25);
    expect(Math.round(sinceAnswer.p50 / 1_000)).toBe(20);
    expect(Math.round(sinceAnswer.max / 1_000)).toBe(30);
  });

  test('a run is complete when nothing is lost or duplicated', () => {
    const seen = judge(ALL);
    expect([seen.lost, seen.doubled, seen.renamed, isWhole(seen)]).toEqual([0, 0, 0, true]);
  });

  test('an acknowledged pill that did not arrive is lost', () => {
    const seen = judge(ALL.slice(0, 2));
    expect([seen.lost, isWhole(seen)]).toEqual([1, false]);
  });

  test('an unacknowledged pill is not lost, but the run is incomplete', () => {
    const seen = judge(ALL.slice(0, 2), { answersMicros: [...ANSWERS.slice(0, 2), 0] });
    expect([seen.lost, seen.notAcknowledged, isWhole(seen)]).toEqual([0, 1, false]);
  });

  test('duplicates are counted, with the same id and with another', () => {
    const same = judge([...ALL, ['a', 0, 40_000]]);
    expect([same.doubled, same.doubledIds, same.renamed]).toEqual([1, 1, 0]);
    const other = judge([...ALL, ['x', 0, 40_000]]);
    expect([other.doubled, other.doubledIds, other.renamed]).toEqual([1, 0, 1]);
  });

  test.each([
    [9_000, true],
    [11_000, false],
  ])('sent %d µs late: valid %s', (lateMicros, valid) => {
    expect(judge(ALL, { lateMicros }).valid).toBe(valid);
  });

  test('rates cover the time to the last arrival', () => {
    // The plan takes 200 ms; the last arrival follows 35 ms later.
    expect(judge(ALL).pillsPerS).toBeCloseTo(3 / 0.235, 3);
  });
});

function cellOf(perS: number, p99: number, more: Partial<WebhookRun> = {}): WebhookRun {
  const spread = { p99 } as WebhookRun['sincePlanned'];
  return {
    ...{ perS, deliveriesPerS: perS * 50, valid: true, overdue: 0, lost: 0, doubled: 0 },
    ...{ renamed: 0, forged: 0, verified: 1, notAcknowledged: 0 },
    ...{ sincePlanned: spread, sinceAnswer: spread, ...more },
  } as WebhookRun;
}

describe('goals', () => {
  test.each([
    ['within a second', cellOf(10, 1_000_000), true],
    ['slower', cellOf(10, 1_000_001), false],
    ['waiting in PostgreSQL', cellOf(10, 1_000, { overdue: 1 }), false],
    ['lost', cellOf(10, 1_000, { lost: 1 }), false],
  ])('whether a run is sustained: %s', (_, run, sustained) => {
    expect(isSustained(run)).toBe(sustained);
  });

  test('the best cell is valid and sustained', () => {
    const cells = [
      cellOf(10, 1_000),
      cellOf(25, 1_000),
      cellOf(50, 1_000, { valid: false }),
      cellOf(100, 2_000_000),
    ];
    expect(bestOf(cells)?.perS).toBe(25);
    expect(bestOf([])).toBeUndefined();
  });

  test('neighbours are compared by the medians of their rounds', () => {
    const cells = [
      [false, 10],
      [true, 11],
      [true, 40],
      [false, 20],
      [false, 12],
      [true, 18],
    ] as const;
    const summary = summariseNeighbours(
      cells.map(([hangs, p99], round) => ({ ...cellOf(10, p99), round, hangs })),
    );
    expect(summary).toEqual({ healthyP99: 12, hangingP99: 18, ratio: 1.5, valid: true });
  });
});

describe('the pace of a drain', () => {
  test('goes from the first message to 99 % of the pills', () => {
    const accepted = [
      { atMicros: 3_000_000, pills: 50 },
      { atMicros: 1_000_000, pills: 49 },
      { atMicros: 300_000_000, pills: 1 },
    ];
    expect(paceOf(accepted, 100)).toEqual({
      ...{ firstMicros: 1_000_000, mostMicros: 3_000_000, messagesPerS: 1, pillsPerS: 49.5 },
    });
  });

  test('has no end if too few pills arrived', () => {
    expect(paceOf([{ atMicros: 5, pills: 98 }], 100)).toMatchObject({
      ...{ firstMicros: 5, mostMicros: Number.NaN },
    });
    expect(paceOf([], 100).firstMicros).toBeNaN();
  });
});
