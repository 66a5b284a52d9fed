// Which failed queries are the caller's fault, and which pages are no longer valid.

import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { fixedPepper } from '../../../domain/access/pepper.ts';
import { PROBLEMS } from '../../http/problem-catalogue.ts';
import { QueryError } from '../clickhouse/query-error.ts';
import type { Caller } from '../server/caller.ts';
import { createHistory, type History, type HistoryDeps } from './history.ts';
import { rangeText } from './history-query.ts';
import { historyEndpoint } from './history-route.ts';
import { signPage } from './page-token.ts';

const PEPPER = fixedPepper(Buffer.alloc(32, 7));
const SYMBOL = '7203.T';

async function ask(history: Omit<History, 'bytes'>, url: string) {
  const app = Fastify();
  app.decorateRequest('caller', undefined);
  app.addHook('onRequest', async (request) => {
    request.caller = { account: { id: 'acc_1' } } as unknown as Caller;
  });
  const { handler } = historyEndpoint({
    history: { bytes: async () => undefined, ...history },
    epoch: 'e2',
    pepper: PEPPER,
    findUnknown: () => [],
  });
  app.get('/api/pills', handler as never);
  const { statusCode, headers, payload } = await app.inject(url);
  await app.close();
  return { status: statusCode, headers, body: JSON.parse(payload) };
}

test.each([
  ['heavy', 400, 'history_too_heavy', 'never', undefined],
  ['busy', 503, 'overloaded', 'after', '2'],
  ['unavailable', 503, 'history_unavailable', 'after', '2'],
] as const)('%s: %i %s, retry: %s', async (kind, status, code, retry, retryAfter) => {
  const fail = () => Promise.reject(new QueryError(kind));
  const answer = await ask({ byPosition: fail, byTime: fail }, '/api/pills?after=e2:');
  expect([answer.status, answer.body.code, answer.body.retry]).toEqual([status, code, retry]);
  expect(answer.headers['retry-after']).toBe(retryAfter);
  expect(PROBLEMS[code].retry).toBe(retry);
});

test('a page by time that began in a former log is no longer valid', async () => {
  const deps = {
    select: async () => [],
    coverage: { now: async () => ({ offsets: new Map([[0, 5]]), receivedAt: undefined }) },
    turns: { begin: async () => () => undefined },
    topic: { epoch: 'e2', partitions: 1, partitionOf: () => 0 },
    logEnd: async () => undefined,
  } as unknown as HistoryDeps;
  const query = new URLSearchParams({ symbol: SYMBOL, from: '2026-11-20T00:00:00Z' });
  const pageOf = (epoch: string, offset: number) => {
    const asOf = { position: `${epoch}:0-${offset}`, received_at: null, lag_ms: 0 };
    const page = signPage({ key: [1, epoch, 3], asOf }, rangeText(query), PEPPER);
    return ask(createHistory(deps), `/api/pills?${query}&page=${page}`);
  };
  expect((await pageOf('e2', 5)).status).toBe(200);
  expect((await pageOf('e2', 6)).body.code).toBe('history_behind');
  // Offsets of a former log do not compare.
  for (const offset of [1, 900]) {
    const { status, body } = await pageOf('e1', offset);
    expect([status, body.errors[0].code]).toEqual([400, 'page_unknown']);
  }
});
