import { mkdtemp, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import getPort from 'get-port';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { spreadPercent } from '../../../generator/replay/quote-pill.ts';
import { readQuotes } from '../../../generator/replay/quotes.ts';
import { nowMicros } from '../../../lib/clock.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { packageRoot } from '../../../lib/root.ts';
import { createTestAccount, openTestDatabase } from '../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { makePill, openPillWriter } from '../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { createRandom, log, shuffle, walk } from './testing/market.ts';
import * as plain from './testing/recompute.ts';

/** Another file of quotes can be named, e.g. one of 10,000. */
const QUOTES =
  process.env.QUOTES_FILE ?? path.join(packageRoot, 'generator/replay/eurjpy-sample-quotes.csv');
const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const DAY_US = 86_400e6;
/** Quotes of another file may be older than the calendars. */
const CALENDARS_FROM = Date.UTC(2024, 0, 2) * 1_000;

let namespace: Namespace;
let processes: TestProcess[] = [];
let db: Database;
let key: string;
let base: string;
let pills: plain.EffectivePill[];
/** When the walks began: on a whole hour of the day before yesterday. */
let began: number;
let writtenFrom: number;
let writtenUntil: number;

beforeAll(async () => {
  // Two days are live, so that a track record can be had in a test.
  namespace = await createNamespace({ backfill_age_ms: 5 * 86_400_000 });
  const writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  key = (await createTestAccount(db, namespace, { tier: 'institutional' })).key;
  const random = createRandom(SEED);
  began = (Math.floor(nowMicros() / 3_600e6) - 48) * 3_600e6;
  const walks = ['7203.T', '6758.T', '0700.HK'].flatMap((symbol) =>
    walk(symbol, began, 7_200, random),
  );
  const quotes = await quotePills(QUOTES, 'EUR/JPY');
  const all = shuffle([...walks, ...quotes], random);
  const repeats = all.filter(() => random() < 0.05).map((pill) => ({ ...pill, confidence: 0.5 }));
  writtenFrom = nowMicros();
  const logged = await log(writer, [...all, ...shuffle(repeats, random)], 5 * DAY_US);
  writtenUntil = nowMicros();
  // Offsets of different partitions: each symbol is in one.
  pills = plain.effective(logged);
  await writer.close();
  const rules = path.join(await mkdtemp(path.join(os.tmpdir(), 'pillole-rules-')), 'rules.json');
  await writeFile(rules, JSON.stringify({ prefix: { 'COIN:': 'ALWAYS' } }));
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  processes = await Promise.all([
    startProcess('pipelines/main.js', ['latest'], namespace.env),
    startProcess('pipelines/main.js', ['analytics'], namespace.env),
    startProcess('gateway/api/main.js', [], {
      ...namespace.env,
      API_PORT: String(port),
      VENUE_RULES: rules,
    }),
  ]);
  await Promise.all(processes.map((process) => process.ready()));
  await waitFor('all pills to be stored', async () => {
    const counts = await Promise.all(
      ['7203.T', '6758.T', '0700.HK', 'EUR/JPY'].map(async (symbol) => {
        const own = pills.filter((pill) => pill.symbol === symbol);
        const times = own.map(({ order }) => order);
        const { body } = await ask('summary', {
          symbol,
          from: Math.min(...times),
          to: Math.max(...times) + 1,
        });
        return body.count === own.length;
      }),
    );
    return counts.every(Boolean);
  });
}, 120_000);

afterAll(async () => {
  await Promise.all(processes.map((process) => process.stop()));
  await db?.destroy();
});

/** Pills of a file of real quotes, under their own times. */
async function quotePills(file: string, symbol: string): Promise<PillRecord[]> {
  const pills: PillRecord[] = [];
  for await (const row of readQuotes(file)) {
    if (!row.ok) throw new Error(`Line ${row.fault.line}: ${row.fault.reason}`);
    const { line, timestamp, bid, ask } = row.quote;
    const spread = spreadPercent(bid, ask);
    const confidence = Math.round(10_000 / (1 + spread / 0.05)) / 10_000;
    pills.push(
      makePill({
        ...{ id: `q-${line}`, symbol, timestamp, confidence },
        gross_spread_percent: spread,
      }),
    );
  }
  return pills;
}

type Parameters = Readonly<Record<string, string | number>>;

async function ask(name: string, parameters: Parameters, headers: Record<string, string> = {}) {
  const query = new URLSearchParams();
  for (const [parameter, value] of Object.entries(parameters)) {
    const isTime = (parameter === 'from' || parameter === 'to') && typeof value === 'number';
    query.set(parameter, isTime ? formatTimestamp(value as number) : String(value));
  }
  const answer = await request(`${base}/api/analytics/${name}?${query}`, {
    headers: { 'x-api-key': key, ...headers },
  });
  const text = await answer.body.text();
  const isJson = String(answer.headers['content-type']).includes('json');
  return {
    status: answer.statusCode,
    headers: answer.headers,
    text,
    body: isJson ? JSON.parse(text) : null,
  };
}

/** Numbers that are sums may differ in their last digits. */
function near(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isInteger(value)) return expect.closeTo(value, 9);
  if (Array.isArray(value)) return value.map(near);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, near(of)]));
  }
  return value;
}

describe(`the same figures as computed from the pills in plain code (SEED=${SEED})`, () => {
  test.each([
    ['1s', 1],
    ['1m', 60],
    ['1h', 3_600],
    ['1d', 86_400],
  ])('bars of %s, over pages, both ways', async (interval, stepS) => {
    const since = Math.floor(began / (stepS * 1e6)) * stepS * 1e6;
    const until = began + (stepS === 1 ? 600e6 : 7_200e6);
    const wholeUntil = Math.ceil(until / (stepS * 1e6)) * stepS * 1e6;
    for (const symbol of ['7203.T', '6758.T']) {
      const expected = [...plain.bars(plain.within(pills, symbol, since, wholeUntil), stepS * 1e6)]
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
          const { status, body }: Awaited<ReturnType<typeof ask>> = await ask('bars', {
            ...{ symbol, interval, from: began, to: until, order, limit: 97 },
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
    const own = pills.filter(({ symbol }) => symbol === 'EUR/JPY');
    const since = Math.min(...own.map(({ order }) => order));
    const until = Math.max(...own.map(({ order }) => order)) + 1;
    const expected = plain.bars(plain.within(pills, 'EUR/JPY', since - 60e6, until + 60e6), 60e6);
    const { body } = await ask('bars', {
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
    const own = plain.within(pills, 'EUR/JPY', 0, nowMicros());
    const { body, status } = await ask('bars', {
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

  test('a summary', async () => {
    const [since, until] = [began + 600e6, began + 5_000e6];
    const own = plain.within(pills, '7203.T', since, until);
    const spreads = own.map(({ spread }) => spread);
    const confidences = own.map(({ confidence }) => confidence);
    const { body } = await ask('summary', { symbol: '7203.T', from: since, to: until });
    expect(body).toMatchObject({
      symbol: '7203.T',
      window: { from: formatTimestamp(since), to: formatTimestamp(until) },
      count: own.length,
      spread: near({
        mean: plain.mean(spreads),
        stddev: plain.deviation(spreads),
        min: Math.min(...spreads),
        max: Math.max(...spreads),
        p05: plain.percentile(spreads, 0.05),
        p50: plain.percentile(spreads, 0.5),
        p95: plain.percentile(spreads, 0.95),
      }) as object,
      confidence: near({
        mean: plain.mean(confidences),
        p50: plain.percentile(confidences, 0.5),
      }) as object,
      last: {
        timestamp: formatTimestamp(own.at(-1)!.timestamp),
        gross_spread_percent: own.at(-1)!.spread,
      },
      as_of: { position: expect.stringMatching(/^[a-z0-9]+:\d/), lag_ms: expect.any(Number) },
    });
  });

  test.each([1, 7, 60, 600])('states, held %i s', async (hold) => {
    const [since, until] = [began + 333e6, began + 6_200e6];
    const own = plain.within(pills, '6758.T', since - hold * 1e6, until);
    const expected = plain.states(own, since, until, hold * 1e6);
    const { body } = await ask('states', {
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
    expect(got.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
    for (const { market_state, pills: count } of got) {
      const inside = own.filter(({ state, order }) => state === market_state && order >= since);
      expect(count, market_state).toBe(inside.length);
    }
  });

  test('outliers', async () => {
    const [since, until] = [began + 3_600e6, began + 7_200e6];
    const own = plain.within(pills, '7203.T', 0, until);
    const scores = plain
      .outlierScores(own)
      .filter(({ pill, z }) => pill.order >= since && z !== undefined && Math.abs(z) >= 5);
    expect(scores.length).toBeGreaterThan(3);
    const { body } = await ask('outliers', {
      symbol: '7203.T',
      from: since,
      to: until,
      threshold: 5,
      limit: 1_000,
    });
    expect(body.count).toBe(scores.length);
    const byId = new Map(scores.map(({ pill, z }) => [pill.id, z!]));
    for (const { id, z } of body.data as { id: string; z: number }[]) {
      expect(z).toBeCloseTo(byId.get(id)!, 6);
    }
  });

  test('a correlation', async () => {
    const [since, until] = [began, began + 7_200e6];
    const symbols = ['7203.T', '6758.T', '0700.HK'];
    const { body } = await ask('correlation', {
      symbols: symbols.join(),
      from: since,
      to: until,
      min_n: 10,
    });
    const changes = symbols.map((symbol) => {
      const closes = plain.bars(plain.within(pills, symbol, since, until), 60e6);
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
        expect(body.r[one][other]).toBeCloseTo(r, 9);
      }
    }
    const { body: few } = await ask('correlation', {
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

  test.each(['1m', '5m', '60m'] as const)('a track record at %s', async (horizon) => {
    const horizonUs = { '1m': 60e6, '5m': 300e6, '60m': 3_600e6 }[horizon];
    const [since, until] = [began, began + 7_200e6];
    const own = ['7203.T', '6758.T', '0700.HK'].flatMap((symbol) =>
      plain.within(pills, symbol, since, until),
    );
    const record = plain.trackRecord(own, pills, { horizonUs, ageMaxUs: 60e6, asOf: nowMicros() });
    const { body } = await ask('confidence', { symbol: '*', horizon, from: since, to: until });
    const count = (name: string) => record.filter(({ outcome }) => outcome === name).length;
    expect(body.pills).toEqual({
      all: own.length,
      settled: count('settled'),
      unsettled: 0,
      not_observable: count('not_observable'),
      excluded_backfill: 0,
      above_scale: 0,
    });
    expect(count('not_observable')).toBeGreaterThan(0);
    for (const [at, bucket] of (body.buckets as Record<string, number>[]).entries()) {
      const inside = record.filter(
        ({ outcome, pill }) =>
          outcome === 'settled' && Math.min(9, Math.floor((pill.confidence / 1) * 10)) === at,
      );
      const hits = inside.filter(
        ({ pill, after }) => Math.abs(after!) < Math.abs(pill.spread),
      ).length;
      expect(bucket).toMatchObject({ n: inside.length, hits });
      expect(bucket.rate).toBeCloseTo(hits / inside.length, 12);
      expect(bucket.mean_change).toBeCloseTo(
        plain.mean(inside.map(({ pill, after }) => after! - pill.spread)),
        9,
      );
    }
  });

  test('what is not settled, and backfill, are named apart', async () => {
    const quotes = plain.within(pills, 'EUR/JPY', 0, nowMicros());
    const range = { from: quotes[0]!.order, to: quotes.at(-1)!.order + 1 };
    const { body } = await ask('confidence', { symbol: 'EUR/JPY', horizon: '1m', ...range });
    expect(body.pills).toMatchObject({
      all: quotes.length,
      settled: 0,
      excluded_backfill: quotes.length,
    });
    expect(body.buckets).toEqual([]);
  });

  test('the cadence, and why it was broken', async () => {
    const own = pills
      .filter(({ symbol, backfill }) => symbol === '7203.T' && !backfill)
      .map(({ receivedAt }) => receivedAt)
      .sort((one, other) => one - other);
    const intervals = own.slice(1).map((at, place) => (at - own[place]!) / 1_000);
    const { body } = await ask('cadence', {
      symbol: '7203.T',
      from: writtenFrom,
      to: writtenUntil + 1,
    });
    expect(body).toMatchObject({
      count: intervals.length,
      interval_ms: near({
        p50: plain.percentile(intervals, 0.5),
        p95: plain.percentile(intervals, 0.95),
        max: Math.max(...intervals),
      }) as object,
      late_after_ms: 5_000,
    });
  });
});

test('the same figures as a table; unchanged they are not sent again', async () => {
  const query = { symbol: '7203.T', interval: '1m', from: began, to: began + 600e6 };
  const json = await ask('bars', query);
  const csv = await ask('bars', { ...query, format: 'csv' });
  expect(csv.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
  const [head, ...lines] = csv.text.trim().split('\n');
  expect(head!.split(',')).toEqual(
    Object.keys(json.body.data[0]).sort((a, b) => head!.indexOf(a) - head!.indexOf(b)),
  );
  expect(lines).toHaveLength(json.body.data.length);
  expect(Number(lines[0]!.split(',')[head!.split(',').indexOf('close')])).toBe(
    json.body.data[0].close,
  );
  for (const answer of [json, csv]) {
    const format = answer === csv ? { format: 'csv' } : {};
    const again = await ask(
      'bars',
      { ...query, ...format },
      { 'if-none-match': String(answer.headers.etag) },
    );
    expect(again.status).toBe(304);
  }
});

test.each([
  ['bars', {}, 'symbol'],
  ['bars', { symbol: '7203.T', from: '2026-11-20' }, 'from'],
  ['bars', { symbol: '7203.T', from: '2026-11-20T00:00:00' }, 'from'],
  ['bars', { symbol: '7203.T', from: '2026-11-20T02:00:00Z', to: '2026-11-20T01:00:00Z' }, 'from'],
  [
    'bars',
    { symbol: '7203.T', interval: '1s', from: '2026-11-18T00:00:00Z', to: '2026-11-20T00:00:00Z' },
    'from',
  ],
  ['bars', { symbol: '7203.T', interval: '2m' }, 'interval'],
  ['bars', { symbol: '7203.T', interval: '1m', day: 'session' }, 'day'],
  ['bars', { symbol: 'NOWHERE', interval: '1d', day: 'session' }, 'day'],
  [
    'bars',
    {
      symbol: '7203.T',
      interval: '1d',
      day: 'session',
      from: '2018-12-01T00:00:00Z',
      to: '2019-02-01T00:00:00Z',
    },
    'calendar_unknown',
  ],
  ['bars', { symbol: '7203.T', limit: 1_001 }, 'limit'],
  ['bars', { symbol: '7203.T', page: 'x' }, 'page'],
  ['bars', { symbol: '7203.T', page: '1' }, 'page'],
  ['bars', { symbol: "7203.T' OR 1=1 --" }, 'symbol'],
  ['states', { symbol: '7203.T', max_hold_s: 0 }, 'max_hold_s'],
  ['movers', { window: '2h' }, 'window'],
  ['movers', { order: 'x' }, 'order'],
  ['outliers', { symbol: '7203.T', threshold: 0.5 }, 'threshold'],
  ['correlation', { symbols: '7203.T' }, 'symbols'],
  ['correlation', { symbols: '7203.T,7203.T' }, 'symbols'],
  ['correlation', { symbols: '7203.T,bad one' }, 'symbols'],
  ['correlation', { symbols: Array.from({ length: 21 }, (_, at) => `S${at}`).join() }, 'symbols'],
  ['confidence', { scale: 0 }, 'scale'],
  ['confidence', { symbol: '*', from: '2026-11-18T00:00:00Z', to: '2026-11-20T00:00:00Z' }, 'from'],
])('%s refuses %j, and says which parameter', async (name, parameters, wrong) => {
  const { status, body } = await ask(name, parameters as Parameters);
  expect([status, body.code]).toEqual([400, 'parameter_invalid']);
  expect(JSON.stringify(body.errors)).toContain(wrong);
});

test('of what was never sent nothing is made up', async () => {
  const symbol = 'NEVER.T';
  expect((await ask('bars', { symbol })).body).toMatchObject({ data: [], next: null });
  expect((await ask('summary', { symbol })).body).toMatchObject({
    count: 0,
    spread: null,
    last: null,
  });
  const { body } = await ask('states', { symbol });
  expect(body.data).toEqual([
    { market_state: 'unobserved', seconds: 86_400, share: 1, spells: 1, pills: 0 },
  ]);
  expect((await ask('cadence', { symbol })).body).toMatchObject({
    count: 0,
    gaps: [],
    expected_ms: null,
  });
  expect((await ask('outliers', { symbol })).body).toMatchObject({ count: 0, data: [] });
});

test('who moved, and why one was silent', async () => {
  const writer = await openPillWriter(namespace);
  const from = nowMicros();
  const spreads = {
    'COIN:A': [0.1, 0.11, 0.12, 0.13, 0.15],
    'COIN:B': [0.3, 0.29, 0.31, 0.3, 0.1],
  };
  const send = async (symbol: keyof typeof spreads, at: number) => {
    const spread = spreads[symbol][at]!;
    await log(writer, [makePill({ symbol, gross_spread_percent: spread })], 5 * DAY_US);
  };
  for (const at of [0, 1, 2, 3]) {
    await send('COIN:B', at);
    await send('COIN:A', at);
  }
  // Longer than the 5 s after which a silence is a gap: nothing of anybody, then A alone, then B.
  await sleep(5_500);
  await send('COIN:A', 4);
  await sleep(500);
  await send('COIN:B', 4);
  await writer.close();
  const movers = await waitFor('all to be stored', async () => {
    const { body } = await ask('movers', { window: '5m', min_count: 5 });
    return body.data.length === 2 && body;
  });
  const row = (symbol: keyof typeof spreads) => {
    const [all, now] = [spreads[symbol], spreads[symbol][4]!];
    const z = (now - plain.mean(all)) / plain.deviation(all);
    // biome-ignore lint/suspicious/noThenProperty: a word of the contract; it is a number
    return near({ symbol, now, then: all[0], change: now - all[0]!, z, count: 5 });
  };
  expect(movers.data).toEqual([row('COIN:B'), row('COIN:A')]);
  const until = nowMicros();
  const because = async (symbol: string) => {
    const { body } = await ask('cadence', { symbol, from, to: until });
    expect(body).toMatchObject({ count: 4, gaps_count: 1, late_after_ms: 5_000 });
    return body.gaps[0].because;
  };
  expect(await because('COIN:A')).toBe('generator_silent');
  expect(await because('COIN:B')).toBe('generator_late');
}, 60_000);
