import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { spreadPercent } from '../../../generator/replay/quote-pill.ts';
import { readQuotes } from '../../../generator/replay/quotes.ts';
import { nowMicros } from '../../../lib/clock.ts';
import { packageRoot } from '../../../lib/root.ts';
import { makePill } from '../../../lib/testing/pills.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { Answer } from '../testing/platform.ts';
import * as plain from './testing/recompute.ts';
import { DAY_US, near, openWorld, SEED, type World } from './testing/world.ts';

/** Another file of quotes can be named, e.g. one of 10,000. */
const QUOTES =
  process.env.QUOTES_FILE ?? path.join(packageRoot, 'generator/replay/eurjpy-sample-quotes.csv');
/** Quotes of another file may be older than the calendars. */
const CALENDARS_FROM = Date.UTC(2024, 0, 2) * 1_000;

let world: World;

beforeAll(async () => {
  world = await openWorld({
    walks: ['7203.T', '6758.T'],
    others: await quotePills(QUOTES, 'EUR/JPY'),
  });
}, 120_000);

afterAll(() => world?.close());

/** Pills of a file of real quotes, under their own times. */
async function quotePills(file: string, symbol: string): Promise<PillRecord[]> {
  const pills: PillRecord[] = [];
  for await (const row of readQuotes(file)) {
    if (!row.ok) throw new Error(`Line ${row.fault.line}: ${row.fault.reason}`);
    const { line, timestamp, bid, ask } = row.quote;
    const spread = spreadPercent(bid, ask);
    const confidence = Math.round(10_000 / (1 + spread / 0.05)) / 10_000;
    const own = { id: `q-${line}`, symbol, timestamp, confidence };
    pills.push(makePill({ ...own, gross_spread_percent: spread }));
  }
  return pills;
}

describe(`the same figures as computed from the pills in plain code (SEED=${SEED})`, () => {
  test.each([
    ['1s', 1],
    ['1m', 60],
    ['1h', 3_600],
    ['1d', 86_400],
  ])('bars of %s, over pages, both ways', async (interval, stepS) => {
    const since = Math.floor(world.began / (stepS * 1e6)) * stepS * 1e6;
    const until = world.began + (stepS === 1 ? 600e6 : 7_200e6);
    const wholeUntil = Math.ceil(until / (stepS * 1e6)) * stepS * 1e6;
    for (const symbol of ['7203.T', '6758.T']) {
      const expected = [
        ...plain.bars(plain.within(world.pills, symbol, since, wholeUntil), stepS * 1e6),
      ]
        .sort(([one], [other]) => one - other)
        .map(([start, bar]) => ({
          start: formatTimestamp(start).replace('.000000', ''),
          ...bar,
          final: start + stepS * 1e6 + 5 * DAY_US <= nowMicros(),
        }));
      for (const order of ['asc', 'desc']) {
        const got: unknown[] = [];
        let page: string | null = null;
        do {
          const { status, body }: Answer = await world.ask('bars', {
            ...{ symbol, interval, from: world.began, to: until, order, limit: 97 },
            ...(page === null ? {} : { page }),
          });
          expect(status).toBe(200);
          got.push(...body.data);
          page = body.next;
        } while (page !== null);
        expect(got).toEqual(near(order === 'asc' ? expected : expected.toReversed()));
      }
    }
  });

  test('bars of real quotes, shuffled and repeated', async () => {
    const own = world.pills.filter(({ symbol }) => symbol === 'EUR/JPY');
    const since = Math.min(...own.map(({ order }) => order));
    const until = Math.max(...own.map(({ order }) => order)) + 1;
    const expected = plain.bars(
      plain.within(world.pills, 'EUR/JPY', since - 60e6, until + 60e6),
      60e6,
    );
    const { body } = await world.ask('bars', {
      ...{ symbol: 'EUR/JPY', interval: '1m', from: since, to: until, order: 'asc', limit: 1_000 },
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

  test('bars of a session hold what is from its open to its close', async () => {
    const own = plain.within(world.pills, 'EUR/JPY', 0, nowMicros());
    const { body, status } = await world.ask('bars', {
      ...{ symbol: 'EUR/JPY', interval: '1d', day: 'session', order: 'asc' },
      ...{ from: own[0]!.order - DAY_US, to: own.at(-1)!.order + DAY_US },
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
      expect(figures).toEqual(near(plain.barOf(inside, until)));
    }
  });
});

test('the same figures as a table; unchanged they are not sent again', async () => {
  const query = { symbol: '7203.T', interval: '1m', from: world.began, to: world.began + 600e6 };
  const json = await world.ask('bars', query);
  const csv = await world.ask('bars', { ...query, format: 'csv' });
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
    const again = await world.ask(
      'bars',
      { ...query, ...format },
      { 'if-none-match': String(answer.headers.etag) },
    );
    expect(again.status).toBe(304);
  }
});
