import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { testSeed } from '../../../testing/seed.ts';
import { type AnalyticsFixture, near, openAnalyticsFixture } from './testing/analytics-fixture.ts';
import * as reference from './testing/recompute.ts';

let fixture: AnalyticsFixture;

beforeAll(async () => {
  fixture = await openAnalyticsFixture({ walks: ['7203.T', '6758.T'] });
});

afterAll(() => fixture?.close());

describe(`the figures equal the results of plain code (TEST_SEED=${testSeed})`, () => {
  test('a summary', async () => {
    const [since, until] = [fixture.began + 600e6, fixture.began + 5_000e6];
    const own = reference.within(fixture.pills, '7203.T', since, until);
    const spreads = own.map(({ spread }) => spread);
    const confidences = own.map(({ confidence }) => confidence);
    const { body } = await fixture.ask('summary', { symbol: '7203.T', from: since, to: until });
    expect(body).toMatchObject({
      symbol: '7203.T',
      window: { from: formatTimestamp(since), to: formatTimestamp(until) },
      count: own.length,
      spread: near({
        mean: reference.mean(spreads),
        stddev: reference.deviation(spreads),
        min: Math.min(...spreads),
        max: Math.max(...spreads),
        p05: reference.percentile(spreads, 0.05),
        p50: reference.percentile(spreads, 0.5),
        p95: reference.percentile(spreads, 0.95),
      }) as object,
      confidence: near(
        { mean: reference.mean(confidences), p50: reference.percentile(confidences, 0.5) },
        6,
      ) as object,
      last: {
        timestamp: formatTimestamp(own.at(-1)!.timestamp),
        gross_spread_percent: own.at(-1)!.spread,
      },
      as_of: { position: expect.stringMatching(/^[a-z0-9]+:\d/), lag_ms: expect.any(Number) },
    });
  });

  test.each([1, 7, 60, 600])('states, held %i s', async (hold) => {
    const [since, until] = [fixture.began + 333e6, fixture.began + 6_200e6];
    const own = reference.within(fixture.pills, '6758.T', since - hold * 1e6, until);
    const expected = reference.states(own, since, until, hold * 1e6);
    const { body } = await fixture.ask('states', {
      symbol: '6758.T',
      from: since,
      to: until,
      max_hold_s: hold,
    });
    const got = body.data as {
      market_state: string;
      seconds: number;
      share: number;
      spells: number;
      pills: number;
    }[];
    expect(
      Object.fromEntries(
        got.map(({ market_state, seconds, spells }) => [market_state, { seconds, spells }]),
      ),
    ).toEqual(near(Object.fromEntries(expected)));
    expect(got.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 5);
    for (const { market_state, pills: count } of got) {
      const inside = own.filter(({ state, order }) => state === market_state && order >= since);
      expect(count, market_state).toBe(inside.length);
    }
  });

  test('outliers', async () => {
    const [since, until] = [fixture.began + 3_600e6, fixture.began + 7_200e6];
    const own = reference.within(fixture.pills, '7203.T', 0, until);
    const scores = reference
      .outlierScores(own)
      .filter(({ pill, z }) => pill.order >= since && z !== undefined && Math.abs(z) >= 5);
    expect(scores.length).toBeGreaterThan(3);
    const { body } = await fixture.ask('outliers', {
      symbol: '7203.T',
      from: since,
      to: until,
      threshold: 5,
      limit: 1_000,
    });
    expect(body.count).toBe(scores.length);
    const byId = new Map(scores.map(({ pill, z }) => [pill.id, z!]));
    for (const { id, z } of body.data as { id: string; z: number }[]) {
      expect({ z }).toEqual(near({ z: byId.get(id)! }));
    }
  });

  test('the cadence', async () => {
    const own = fixture.pills
      .filter(({ symbol, backfill }) => symbol === '7203.T' && !backfill)
      .map(({ receivedAt }) => receivedAt)
      .sort((one, other) => one - other);
    const intervals = own.slice(1).map((at, index) => (at - own[index]!) / 1_000);
    const { body } = await fixture.ask('cadence', {
      symbol: '7203.T',
      from: fixture.writtenFrom,
      to: fixture.writtenUntil + 1,
    });
    expect(body).toMatchObject({
      count: intervals.length,
      interval_ms: near(
        {
          p50: reference.percentile(intervals, 0.5),
          p95: reference.percentile(intervals, 0.95),
          max: Math.max(...intervals),
        },
        3,
      ) as object,
      late_after_ms: 5_000,
    });
  });
});
