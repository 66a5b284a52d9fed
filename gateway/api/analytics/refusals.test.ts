// What of ClickHouse's silence is the question's fault, and what would fit instead.
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { nowMicros } from '../../../lib/clock.ts';
import type { Caller } from '../caller.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { createTurnstile } from '../turnstile.ts';
import type { Desk } from './desk.ts';
import { ANALYTICS_LIMITS, OUTLIER_PILLS_MAX } from './limits.ts';
import { analyticsEndpoints } from './questions.ts';

const STORED = { offsets: new Map(), receivedAts: new Map(), receivedAt: undefined };

async function ask(select: Desk['ask'], url: string, headers: Record<string, string> = {}) {
  const app = Fastify();
  app.decorateRequest('caller', undefined);
  app.addHook('onRequest', async (request) => {
    request.caller = { account: { id: 'acc_1' } } as unknown as Caller;
  });
  const desk: Desk = {
    ask: select,
    extent: async () => ({ stored: STORED, hasAll: true, completeUntil: nowMicros() }),
  };
  const turnstile = createTurnstile(ANALYTICS_LIMITS);
  const sources = { desk, epoch: 'e1', backfillAgeUs: 0, turnstile, nowMicros };
  for (const route of analyticsEndpoints(sources, () => undefined)) {
    app.get(route.url, route.handler as never);
  }
  const answer = await app.inject({ url: `/api/analytics/${url}`, headers });
  await app.close();
  return answer;
}

const failing = (why: NoAnswer['why']) => () => Promise.reject(new NoAnswer(why));

test.each([
  ['heavy', 400, 'query_too_large', undefined],
  ['busy', 503, 'overloaded', '2'],
  ['away', 503, 'analytics_unavailable', '2'],
] as const)('%s: %i %s', async (why, status, code, retryAfter) => {
  const answer = await ask(failing(why), 'summary?symbol=7203.T');
  expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
  expect(answer.headers['retry-after']).toBe(retryAfter);
});

const HOUR = 'from=2026-11-20T00:00:00Z&to=2026-11-20T01:00:00Z';
const HALF = { from: '2026-11-20T00:30:00.000000Z', to: '2026-11-20T01:00:00.000000Z' };

test.each<[string, object | undefined]>([
  [`bars?symbol=A&${HOUR}`, HALF],
  [
    'bars?symbol=A&interval=1d&from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z',
    { interval: '1h' },
  ],
  [`summary?symbol=A&${HOUR}`, HALF],
  [`states?symbol=A&${HOUR}`, HALF],
  [`outliers?symbol=A&${HOUR}`, HALF],
  [`correlation?symbols=A,B&${HOUR}`, HALF],
  [`cadence?symbol=A&${HOUR}`, HALF],
  [`confidence?symbol=A&${HOUR}`, HALF],
  ['movers?window=4h', { window: '1h' }],
  ['movers?window=5m', undefined],
])('%s is too large: less of it is another question', async (url, fits) => {
  const { code, detail, try: tried } = (await ask(failing('heavy'), url)).json();
  expect(code).toBe('query_too_large');
  expect(tried).toEqual(fits);
  expect(detail).toMatch(
    /^Answering costs more than 5 s, 20000000 pills read or 1 GiB\. [A-Z].*\.$/,
  );
  const [path, query] = url.split('?');
  const less = new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(query)), ...tried });
  const again = (await ask(failing('heavy'), `${path}?${less}`)).json();
  // It is a question, and of something else.
  expect(again.code).toBe('query_too_large');
  if (fits !== undefined) expect(again.try).not.toEqual(tried);
});

test('too many pills for outliers are told as that', async () => {
  const many = async () => Array.from({ length: OUTLIER_PILLS_MAX + 1 }, () => ({}));
  const { detail, try: tried } = (await ask(many as never, `outliers?symbol=A&${HOUR}`)).json();
  expect(detail).toBe(
    `There are more than ${OUTLIER_PILLS_MAX} pills in the time. Half of the time may fit.`,
  );
  expect(tried).toEqual(HALF);
});

test('CSV, by format or by Accept, tells true and false', async () => {
  const bars = async () =>
    ['2026-11-20T00:30:00Z', '2999-01-01T00:00:00Z'].map((start) => ({ start, count: 1 }));
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
