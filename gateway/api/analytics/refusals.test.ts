// Which failed queries are the caller's fault, and what would fit instead.
import Fastify from 'fastify';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { expect, test } from 'vitest';
import { createTurns } from '../../../lib/rate/turns.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { QueryError } from '../clickhouse/query-error.ts';
import type { Caller } from '../server/caller.ts';
import type { AnalyticsReader } from './analytics-reader.ts';
import { ANALYTICS_LIMITS, OUTLIER_PILLS_MAX } from './limits.ts';
import { analyticsRoutes } from './routes.ts';

const COVERAGE = { offsets: new Map(), receivedAts: new Map(), receivedAt: undefined };

async function ask(
  select: AnalyticsReader['select'],
  url: string,
  headers: Record<string, string> = {},
) {
  const app = Fastify();
  app.decorateRequest('caller', undefined);
  app.addHook('onRequest', async (request) => {
    request.caller = { account: { id: 'acc_1' } } as unknown as Caller;
  });
  const reader: AnalyticsReader = {
    select,
    readBytes: () => Promise.reject(new Error('not asked for bytes')),
    freshness: async () => ({ coverage: COVERAGE, isWholeLog: true, completeUntil: nowMicros() }),
  };
  const turns = createTurns(ANALYTICS_LIMITS);
  const calendarOf = () => undefined;
  const deps = {
    reader,
    epoch: 'e1',
    backfillAgeUs: 0,
    confidenceMax: 100,
    findUnknown: () => [],
    turns,
    nowMicros,
    calendarOf,
  };
  for (const route of analyticsRoutes(deps)) {
    app.get(route.url, route.handler as never);
  }
  const answer = await app.inject({ url: `/api/analytics/${url}`, headers });
  await app.close();
  return answer;
}

test('the example of every answer is a valid answer', () => {
  const routes = analyticsRoutes({ turns: createTurns(ANALYTICS_LIMITS) } as never);
  for (const { url, schema } of routes) {
    const answers = schema?.response as Record<200, { content: Record<string, Described> }>;
    const { schema: answer, example } = answers[200].content['application/json']!;
    expect([...Value.Errors(answer, example)], url).toEqual([]);
    expect(answers[200].content['text/csv']!.example, url).toMatch(/^[a-z0-9_,]+\r\n/);
  }
});

interface Described {
  readonly schema: TSchema;
  readonly example: unknown;
}

const failing = (kind: QueryError['kind']) => () => Promise.reject(new QueryError(kind));

test.each([
  ['heavy', 400, 'query_too_large', undefined],
  ['busy', 503, 'overloaded', '2'],
  ['unavailable', 503, 'analytics_unavailable', '2'],
] as const)('%s: %i %s', async (kind, status, code, retryAfter) => {
  const answer = await ask(failing(kind), 'summary?symbol=7203.T');
  expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
  expect(answer.headers['retry-after']).toBe(retryAfter);
});

const HOUR = 'from=2026-11-20T00:00:00Z&to=2026-11-20T01:00:00Z';
const HALF = { from: '2026-11-20T00:30:00.000000Z', to: '2026-11-20T01:00:00.000000Z' };

test.each<[string, object | undefined]>([
  [`bars?symbol=A&${HOUR}`, HALF],
  [
    'bars?symbol=A&interval=1d&from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z',
    { interval: '4h' },
  ],
  [`summary?symbol=A&${HOUR}`, HALF],
  [`states?symbol=A&${HOUR}`, HALF],
  [`outliers?symbol=A&${HOUR}`, HALF],
  [`correlation?symbols=A,B&${HOUR}`, HALF],
  [`cadence?symbol=A&${HOUR}`, HALF],
  [`confidence?symbol=A&${HOUR}`, HALF],
  ['movers?window=4h', { window: '1h' }],
  ['movers?window=5m', undefined],
])('%s is too large: the suggested request is narrower', async (url, fits) => {
  const { code, detail, try: tried } = (await ask(failing('heavy'), url)).json();
  expect(code).toBe('query_too_large');
  expect(tried).toEqual(fits);
  expect(detail).toMatch(
    /^The answer would take more than 5 s, 20000000 pills read or 1 GiB of memory\. [A-Z].*\.$/,
  );
  const [path, query] = url.split('?');
  const less = new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(query)), ...tried });
  const again = (await ask(failing('heavy'), `${path}?${less}`)).json();
  // The suggestion is a valid request, and a different one.
  expect(again.code).toBe('query_too_large');
  if (fits !== undefined) expect(again.try).not.toEqual(tried);
});

test('too many pills for outliers: the problem names that bound', async () => {
  const many = async () => Array.from({ length: OUTLIER_PILLS_MAX + 1 }, () => ({}));
  const { detail, try: tried } = (await ask(many as never, `outliers?symbol=A&${HOUR}`)).json();
  expect(detail).toBe(
    `The window has more than ${OUTLIER_PILLS_MAX} pills. Half of the time may fit.`,
  );
  expect(tried).toEqual(HALF);
});

test('CSV, by format or by Accept, writes true and false', async () => {
  const bars = async () =>
    ['2026-11-20T00:30:00Z', '2999-01-01T00:00:00Z'].map((start) => ({
      ...{ start, count: 1, mean: 0.1, p05: 0.1, p50: 0.1, p95: 0.1, mean_confidence: 80 },
    }));
  const url = `bars?symbol=A&${HOUR}`;
  const [byFormat, byAccept, asJson] = await Promise.all([
    ask(bars as never, `${url}&format=csv`),
    ask(bars as never, url, { accept: 'text/csv' }),
    ask(bars as never, `${url}&format=json`, { accept: 'text/csv' }),
  ]);
  expect(byAccept.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
  expect(byAccept.payload).toBe(byFormat.payload);
  expect(byAccept.headers.vary).toBe('Accept, X-API-Key');
  const [head, ...lines] = byFormat.payload.split('\r\n');
  const at = head!.split(',').indexOf('final');
  expect(lines.map((line) => line.split(',')[at])).toEqual(['true', 'false', undefined]);
  expect(asJson.json().data.map(({ final }: { final: boolean }) => final)).toEqual([true, false]);
});
