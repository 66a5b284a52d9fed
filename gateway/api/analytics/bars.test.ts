import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { confidenceOf, spreadPercent } from '../../../generator/replay/quote-pill.ts';
import { readQuotes } from '../../../generator/replay/quotes.ts';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { makePill } from '../../../testing/pills.ts';
import { testSeed } from '../../../testing/seed.ts';
import type { Answer } from '../testing/api-platform.ts';
import {
  type AnalyticsFixture,
  DAY_US,
  near,
  openAnalyticsFixture,
} from './testing/analytics-fixture.ts';
import * as reference from './testing/recompute.ts';

/** QUOTES_FILE names another file of quotes, e.g. one with 10,000. */
const QUOTES =
  process.env.QUOTES_FILE ?? path.join(packageRoot, 'generator/replay/eurjpy-sample-quotes.csv');
/** The calendars' first day; quotes of another file may be older. */
const CALENDARS_FROM = Date.UTC(2024, 0, 2) * 1_000;

let fixture: AnalyticsFixture;

beforeAll(async () => {
  fixture = await openAnalyticsFixture({
    walks: ['7203.T', '6758.T', 'COIN:X'],
    others: await quotePills(QUOTES, 'EUR/JPY'),
  });
});

afterAll(() => fixture?.close());

/** Pills of a file of real quotes, with their original times. */
async function quotePills(file: string, symbol: string): Promise<PillRecord[]> {
  const pills: PillRecord[] = [];
  for await (const row of readQuotes(file)) {
    if (!row.ok) throw new Error(`Line ${row.fault.line}: ${row.fault.reason}`);
    const { line, timestamp, bid, ask } = row.quote;
    const spread = spreadPercent(bid, ask);
    const own = { id: `q-${line}`, symbol, timestamp, confidence: confidenceOf(spread) };
    pills.push(makePill({ ...own, gross_spread_percent: spread }));
  }
  return pills;
}

describe(`the figures equal the results of plain code (TEST_SEED=${testSeed})`, () => {
  test.each([
    ['1s', 1],
    ['1m', 60],
    ['5m', 300],
    ['15m', 900],
    ['30m', 1_800],
    ['1h', 3_600],
    ['4h', 14_400],
    ['1d', 86_400],
  ])('bars of %s, in pages, in both orders', async (interval, stepS) => {
    const since = Math.floor(fixture.began / (stepS * 1e6)) * stepS * 1e6;
    const until = fixture.began + (stepS === 1 ? 600e6 : 7_200e6);
    const wholeUntil = Math.ceil(until / (stepS * 1e6)) * stepS * 1e6;
    for (const symbol of ['7203.T', '6758.T']) {
      const expected = [
        ...reference.bars(reference.within(fixture.pills, symbol, since, wholeUntil), stepS * 1e6),
      ]
        .sort(([one], [other]) => one - other)
        .map(([start, bar]) => ({
          start: formatTimestamp(start),
          ...bar,
          final: start + stepS * 1e6 + 5 * DAY_US <= nowMicros(),
        }));
      for (const order of ['asc', 'desc']) {
        const got: unknown[] = [];
        let page: string | null = null;
        do {
          const { status, body }: Answer = await fixture.ask('bars', {
            symbol,
            interval,
            from: fixture.began,
            to: until,
            order,
            limit: 97,
            ...(page === null ? {} : { page }),
          });
          expect(status).toBe(200);
          got.push(...body.data);
          page = body.next && new URLSearchParams(body.next.split('?')[1]).get('page');
        } while (page !== null);
        expect(got).toEqual(near(order === 'asc' ? expected : expected.toReversed()));
      }
    }
  });

  test.each([
    ['1m', 60, 7],
    ['15m', 900, 1],
    ['4h', 14_400, 2],
  ])(
    'bars of %s of several symbols, in pages that end within a step, in both orders',
    async (interval, stepS, limit) => {
      const since = Math.floor(fixture.began / (stepS * 1e6)) * stepS * 1e6;
      const [from, to] = [fixture.began, fixture.began + Math.max(stepS * 1e6, 1_200e6)];
      const until = Math.ceil(to / (stepS * 1e6)) * stepS * 1e6;
      const own = (symbol: string) => reference.within(fixture.pills, symbol, since, until);
      const expected = ['6758.T', '7203.T', 'COIN:X']
        .flatMap((symbol) =>
          [...reference.bars(own(symbol), stepS * 1e6)].map(([start, bar]) => ({
            symbol,
            start: formatTimestamp(start),
            ...bar,
          })),
        )
        .sort((one, other) => one.start.localeCompare(other.start));
      const starts = expected.map(({ start }) => start);
      // Most steps have a bar of each symbol, so pages end within steps.
      expect(new Set(starts).size).toBeLessThan(expected.length / 2);
      // Symbols ascend within a step in both orders.
      const newestFirst = [...new Set(starts)]
        .reverse()
        .flatMap((start) => expected.filter((bar) => bar.start === start));
      for (const order of ['asc', 'desc']) {
        const got: Record<string, unknown>[] = [];
        const query = { symbols: 'COIN:X,7203.T,6758.T,7203.T', interval, from, to, order, limit };
        for (let page: string | null | undefined; page !== null; ) {
          const { status, body }: Answer = await fixture.ask('bars', {
            ...query,
            ...(page && { page }),
          });
          expect([status, body.symbol]).toEqual([200, undefined]);
          expect(body.data.length).toBeLessThanOrEqual(limit);
          got.push(...body.data);
          page = body.next && new URLSearchParams(body.next.split('?')[1]).get('page');
        }
        const figures = got.map(({ final: _, ...rest }) => rest);
        expect(figures).toEqual(near(order === 'asc' ? expected : newestFirst));
      }
    },
  );

  test('bars of real quotes, shuffled and repeated', async () => {
    const own = fixture.pills.filter(({ symbol }) => symbol === 'EUR/JPY');
    const since = Math.min(...own.map(({ order }) => order));
    const until = Math.max(...own.map(({ order }) => order)) + 1;
    const expected = reference.bars(
      reference.within(fixture.pills, 'EUR/JPY', since - 60e6, until + 60e6),
      60e6,
    );
    const { body } = await fixture.ask('bars', {
      symbol: 'EUR/JPY',
      interval: '1m',
      from: since,
      to: until,
      order: 'asc',
      limit: 1_000,
    });
    expect(body.data.length).toBe(expected.size);
    const inOrder = [...expected].sort(([one], [other]) => one - other);
    expect(
      body.data.map(({ start: _, final: __, ...figures }: Record<string, unknown>) => figures),
    ).toEqual(near(inOrder.map(([, bar]) => bar)));
    expect(body.data.reduce((sum: number, { count }: { count: number }) => sum + count, 0)).toBe(
      own.length,
    );
  });

  test('a session bar spans from the open to the close', async () => {
    const own = reference.within(fixture.pills, 'EUR/JPY', 0, nowMicros());
    const { body, status } = await fixture.ask('bars', {
      symbol: 'EUR/JPY',
      interval: '1d',
      day: 'session',
      order: 'asc',
      from: own[0]!.order - DAY_US,
      to: own.at(-1)!.order + DAY_US,
    });
    if (own[0]!.order < CALENDARS_FROM) {
      expect([status, body.errors[0].code]).toEqual([400, 'calendar_unknown']);
      return;
    }
    expect(body.day).toBe('session');
    expect(body.data.length).toBeGreaterThan(0);
    for (const { start, end, session_date, final, ...figures } of body.data) {
      const [since, until] = [Date.parse(start) * 1_000, Date.parse(end) * 1_000];
      const inside = own.filter(({ order }) => order >= since && order < until);
      expect(session_date).toMatch(/^\d{4}-\d\d-\d\d$/);
      expect(final).toBe(until + 5 * DAY_US <= nowMicros());
      expect(figures).toEqual(near(reference.barOf(inside, until)));
    }
  });
});

test('CSV has the same figures; unchanged figures are answered by 304', async () => {
  const query = {
    symbol: '7203.T',
    interval: '1m',
    from: fixture.began,
    to: fixture.began + 600e6,
  };
  const json = await fixture.ask('bars', query);
  const csv = await fixture.ask('bars', { ...query, format: 'csv' });
  expect(csv.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
  const [head, ...lines] = csv.text.trim().split('\r\n');
  expect(head!.split(',')).toEqual(
    Object.keys(json.body.data[0]).sort((a, b) => head!.indexOf(a) - head!.indexOf(b)),
  );
  expect(lines).toHaveLength(json.body.data.length);
  expect(Number(lines[0]!.split(',')[head!.split(',').indexOf('close')])).toBe(
    json.body.data[0].close,
  );
  for (const answer of [json, csv]) {
    const format = answer === csv ? { format: 'csv' } : {};
    const again = await fixture.ask(
      'bars',
      { ...query, ...format },
      { 'if-none-match': String(answer.headers.etag) },
    );
    expect(again.status).toBe(304);
  }
});
