// What of ClickHouse's silence is the question's fault, and which pages are none any more.
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { PROBLEMS } from '../../http/problem-catalogue.ts';
import type { Caller } from '../caller.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { createHistory, type History, type HistorySources } from './history.ts';
import { historyEndpoint } from './history-route.ts';
import { signPage } from './page-token.ts';
import { questionText } from './question.ts';

const PEPPER = Buffer.alloc(32, 7);
const SYMBOL = '7203.T';

async function ask(history: History, url: string) {
  const app = Fastify();
  app.decorateRequest('caller', undefined);
  app.addHook('onRequest', async (request) => {
    request.caller = { account: { id: 'acc_1' } } as unknown as Caller;
  });
  const { handler } = historyEndpoint({ history, epoch: 'e2', pepper: PEPPER });
  app.get('/api/pills', handler as never);
  const { statusCode, headers, payload } = await app.inject(url);
  await app.close();
  return { status: statusCode, headers, body: JSON.parse(payload) };
}

test.each([
  ['heavy', 400, 'history_too_heavy', 'never', undefined],
  ['busy', 503, 'overloaded', 'after', '2'],
  ['away', 503, 'history_unavailable', 'after', '2'],
] as const)('%s: %i %s, to be repeated: %s', async (why, status, code, retry, retryAfter) => {
  const fail = () => Promise.reject(new NoAnswer(why));
  const answer = await ask({ places: fail, times: fail }, '/api/pills?after=e2:');
  expect([answer.status, answer.body.code, answer.body.retry]).toEqual([status, code, retry]);
  expect(answer.headers['retry-after']).toBe(retryAfter);
  expect(PROBLEMS[code].retry).toBe(retry);
});

test('a page of a question by time that began in a former log is none any more', async () => {
  const sources = {
    select: async () => [],
    progress: { now: async () => ({ offsets: new Map([[0, 5]]), receivedAt: undefined }) },
    turnstile: { enter: async () => () => undefined },
    log: { epoch: 'e2', partitions: 1, partitionOf: () => 0 },
    logEnd: async () => undefined,
  } as unknown as HistorySources;
  const query = new URLSearchParams({ symbol: SYMBOL, from: '2026-11-20T00:00:00Z' });
  const pageOf = (epoch: string, offset: number) => {
    const asOf = { position: `${epoch}:0-${offset}`, received_at: null, lag_ms: 0 };
    const page = signPage({ key: [1, epoch, 3], asOf }, questionText(query), PEPPER);
    return ask(createHistory(sources), `/api/pills?${query}&page=${page}`);
  };
  expect((await pageOf('e2', 5)).status).toBe(200);
  expect((await pageOf('e2', 6)).body.code).toBe('history_behind');
  // Whatever its offsets: they do not compare.
  for (const offset of [1, 900]) {
    const { status, body } = await pageOf('e1', offset);
    expect([status, body.errors[0].code]).toEqual([400, 'page_unknown']);
  }
});
