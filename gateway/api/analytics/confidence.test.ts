import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { seededRandom, testSeed } from '../../../testing/seed.ts';
import {
  type AnalyticsFixture,
  DAY_US,
  near,
  openAnalyticsFixture,
} from './testing/analytics-fixture.ts';
import { walk } from './testing/random-walk.ts';
import * as reference from './testing/recompute.ts';

const WALKS = ['7203.T', '6758.T', '0700.HK'];
const HORIZONS_US = { '1m': 60e6, '5m': 300e6, '15m': 900e6, '60m': 3_600e6 } as const;
/** The last pill within the horizon may be this old at its end. */
const AGE_MAX_US = 60e6;
let fixture: AnalyticsFixture;

beforeAll(async () => {
  const now = nowMicros();
  const backfill = walk('EUR/JPY', now - 30 * DAY_US, 3_600, seededRandom());
  // No pill around one hour ago: the same pills are settled whenever the test reads the clock.
  const recent = walk('GBP/JPY', now - 9_000e6, 8_990, seededRandom()).filter(
    ({ timestamp }) => timestamp < now - 4_800e6 || timestamp >= now - 2_400e6,
  );
  fixture = await openAnalyticsFixture({ walks: WALKS, others: [...backfill, ...recent] });
});

afterAll(() => fixture?.close());

describe(`the figures equal the results of plain code (TEST_SEED=${testSeed})`, () => {
  test('a correlation', async () => {
    const [since, until] = [fixture.began, fixture.began + 7_200e6];
    const { body } = await fixture.ask('correlation', {
      symbols: WALKS.join(),
      from: since,
      to: until,
      min_n: 10,
    });
    const changes = WALKS.map((symbol) => {
      const closes = reference.bars(reference.within(fixture.pills, symbol, since, until), 60e6);
      const found = new Map<number, number>();
      for (const [start, { close }] of closes) {
        const before = closes.get(start - 60e6);
        if (before !== undefined) found.set(start, close - before.close);
      }
      return found;
    });
    for (const [one, xs] of changes.entries()) {
      for (const [other, ys] of changes.entries()) {
        const common = [...xs].flatMap(([start, x]) =>
          ys.has(start) ? [[x, ys.get(start)!] as const] : [],
        );
        const n = common.length;
        const sum = (of: (x: number, y: number) => number) =>
          common.reduce((total, [x, y]) => total + of(x, y), 0);
        const r =
          (n * sum((x, y) => x * y) - sum((x) => x) * sum((_, y) => y)) /
          Math.sqrt(
            (n * sum((x) => x * x) - sum((x) => x) ** 2) *
              (n * sum((_, y) => y * y) - sum((_, y) => y) ** 2),
          );
        expect(body.n[one][other]).toBe(n);
        expect(body.r[one][other]).toEqual(near(r, 6));
      }
    }
    const { body: few } = await fixture.ask('correlation', {
      symbols: '7203.T,6758.T',
      from: since,
      to: until,
      min_n: 5_000,
    });
    expect(few.r).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  test.each(['1m', '5m', '15m', '60m'] as const)('a track record at %s', async (horizon) => {
    const [since, until] = [fixture.began, fixture.began + 7_200e6];
    const own = WALKS.flatMap((symbol) => reference.within(fixture.pills, symbol, since, until));
    const record = recordOf(own, horizon);
    const { body } = await fixture.ask('confidence', {
      symbol: '*',
      horizon,
      from: since,
      to: until,
    });
    expect(body.pills).toEqual(countsOf(record));
    expect(body.pills).toMatchObject({ unsettled: 0, excluded_backfill: 0 });
    expect(body.pills.not_observable).toBeGreaterThan(0);
    for (const [at, bucket] of (body.buckets as Record<string, number>[]).entries()) {
      const inside = record.filter(
        ({ outcome, pill }) =>
          outcome === 'settled' && Math.min(9, Math.floor((pill.confidence / 100) * 10)) === at,
      );
      const hits = inside.filter(
        ({ pill, after }) => Math.abs(after!) < Math.abs(pill.spread),
      ).length;
      expect(bucket).toMatchObject({ n: inside.length, hits });
      expect(bucket.rate).toEqual(near(hits / inside.length, 6));
      const changes = inside.map(({ pill, after }) => after! - pill.spread);
      expect(bucket.mean_change).toEqual(near(reference.mean(changes)));
    }
  });

  test('unsettled pills are counted separately', async () => {
    const own = reference.within(fixture.pills, 'GBP/JPY', 0, nowMicros());
    const range = { from: own[0]!.order, to: own.at(-1)!.order + 1 };
    const { body } = await fixture.ask('confidence', {
      symbol: 'GBP/JPY',
      horizon: '60m',
      ...range,
    });
    expect(body.pills).toEqual(countsOf(recordOf(own, '60m')));
    expect(body.pills.unsettled).toBeGreaterThan(0);
    expect(body.pills.settled).toBeGreaterThan(0);
  });

  test('backfill is counted separately', async () => {
    const own = reference.within(fixture.pills, 'EUR/JPY', 0, nowMicros());
    const range = { from: own[0]!.order, to: own.at(-1)!.order + 1 };
    const { body } = await fixture.ask('confidence', {
      symbol: 'EUR/JPY',
      horizon: '1m',
      ...range,
    });
    expect(body.pills).toMatchObject({
      all: own.length,
      settled: 0,
      excluded_backfill: own.length,
    });
    expect(body.buckets).toEqual([]);
  });
});

function recordOf(own: readonly reference.EffectivePill[], horizon: keyof typeof HORIZONS_US) {
  const horizonUs = HORIZONS_US[horizon];
  return reference.trackRecord(own, fixture.pills, {
    horizonUs,
    ageMaxUs: AGE_MAX_US,
    asOf: nowMicros(),
  });
}

/** Counts by outcome. */
function countsOf(record: ReturnType<typeof recordOf>) {
  const count = (name: string) => record.filter(({ outcome }) => outcome === name).length;
  return {
    all: record.length,
    settled: count('settled'),
    unsettled: count('unsettled'),
    not_observable: count('not_observable'),
    excluded_backfill: count('excluded_backfill'),
    above_scale: 0,
  };
}
