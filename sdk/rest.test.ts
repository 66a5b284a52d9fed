import { describe, expect, test } from 'vitest';
import type { Client } from './client.ts';
import { createClient } from './index.ts';
import { pillAt } from './testing/frames.ts';
import { usePlayServer } from './testing/play.ts';
import { type HttpAnswer, NOT_FOUND } from './testing/play-server.ts';

const play = usePlayServer();
const LATEST = { data: pillAt(5, 4), position: 'e1:0-5' };

const client = () => createClient({ apiUrl: play.server.httpUrl, key: 'pil_live_key' });

/** Answers each request by the next of a list; the last one again and again. */
function answerInTurn(...answers: readonly HttpAnswer[]) {
  let turn = 0;
  play.server.answer(() => answers[Math.min(turn++, answers.length - 1)]!);
}

const TOO_FAST = {
  status: 429,
  body: {
    ...{ type: '/problems/rate', title: 'Too many calls a second', status: 429 },
    ...{ code: 'rate_exceeded', retry: 'after', retry_after_s: 1, detail: '10 a second.' },
  },
};

describe('a call', () => {
  test.each<[string, (client: Client) => Promise<unknown>, string]>([
    ['latest()', ({ latest }) => latest(), '/api/pills/latest'],
    ['latest(symbol)', ({ latest }) => latest('A B.T'), '/api/pills/latest?symbol=A+B.T'],
    ['latest(symbols)', ({ latest }) => latest(['A', 'B']), '/api/pills/latest?symbols=A%2CB'],
    ['account()', ({ account }) => account(), '/api/account'],
    ['usage()', ({ usage }) => usage({ days: 7 }), '/api/usage?days=7'],
    ['status()', ({ status }) => status(), '/api/status'],
    ['verify(symbol)', ({ verify }) => verify('A'), '/api/market/verify?symbol=A'],
    ['verify(symbols)', ({ verify }) => verify(['A', 'B']), '/api/market/verify?symbols=A%2CB'],
    ['verify(id)', ({ verify }) => verify({ id: 'p-1' }), '/api/market/verify?id=p-1'],
    [
      'history(range)',
      ({ history }) => history({ symbol: 'A', from: '2026-11-20T00:00:00Z', limit: 5 }),
      '/api/pills?symbol=A&from=2026-11-20T00%3A00%3A00Z&limit=5',
    ],
    ['history(next)', ({ history }) => history({ next: '/api/pills?page=2' }), '/api/pills?page=2'],
    ['history(next)', ({ history }) => history({ next: 'abc' }), '/api/pills?page=abc'],
  ])('%s asks for what it says, with the key in the header', async (_, ask, path) => {
    const keys: unknown[] = [];
    play.server.answer((_url, request) => {
      keys.push(request.headers['x-api-key']);
      return { body: LATEST };
    });
    expect(await ask(client())).toEqual(LATEST);
    expect(play.server.requests).toEqual([path]);
    expect(keys).toEqual(['pil_live_key']);
  });

  test('history of a time is read by the largest pages: each is a call', async () => {
    play.server.answer(() => ({ body: { data: [pillAt(5, 4)], next: null, as_of: {} } }));
    for await (const { cursor } of client().history('A', '2026-11-20T00:00:00Z')) {
      expect(cursor).toBe('0-5');
    }
    expect(play.server.requests).toEqual([
      '/api/pills?symbol=A&from=2026-11-20T00%3A00%3A00Z&limit=5000',
    ]);
  });

  test('429 with a short Retry-After is waited for, no less than it says', async () => {
    answerInTurn({ ...TOO_FAST, headers: { 'retry-after': '1' } }, { body: LATEST });
    const began = performance.now();
    expect(await client().latest()).toEqual(LATEST);
    expect(performance.now() - began).toBeGreaterThanOrEqual(990);
    expect(play.server.requests).toHaveLength(2);
  });

  test('429 with a long one is thrown at once, with its wait', async () => {
    answerInTurn({ ...TOO_FAST, headers: { 'retry-after': '3600' } });
    await expect(client().latest()).rejects.toMatchObject({
      ...{ name: 'PilloleError', code: 'rate_exceeded', status: 429, retry: 'after' },
      ...{ retryAfterMs: 3_600_000, problem: { title: 'Too many calls a second' } },
      message: 'Too many calls a second. 10 a second.',
    });
    expect(play.server.requests).toHaveLength(1);
  });

  test('Retry-After may be a date', async () => {
    const headers = { 'retry-after': new Date(Date.now() + 100_000).toUTCString() };
    answerInTurn({ ...TOO_FAST, headers });
    const error = await client()
      .latest()
      .catch((thrown) => thrown);
    expect(error.retryAfterMs).toBeGreaterThan(90_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(100_000);
  });

  test('a fault that may pass is tried three times, then thrown', async () => {
    answerInTurn({ status: 503, body: '<html>away</html>' });
    const error = { code: 'http_503', status: 503, retry: 'after' };
    await expect(client().latest()).rejects.toMatchObject(error);
    expect(play.server.requests).toHaveLength(3);
  });

  test.each([400, 401, 403, 404, 500])('%i is not repeated', async (status) => {
    answerInTurn({ status, body: { ...(NOT_FOUND.body as object), status, code: 'told' } });
    await expect(client().latest()).rejects.toMatchObject({ code: 'told', status, retry: 'never' });
    expect(play.server.requests).toHaveLength(1);
  });

  test('an answer that is not JSON', async () => {
    answerInTurn({ body: 'hello' });
    await expect(client().latest()).rejects.toMatchObject({ code: 'answer_malformed' });
  });

  test('nobody there: the address and the cause are named', async () => {
    await play.server.close();
    await expect(client().latest()).rejects.toMatchObject({
      ...{ code: 'network', retry: 'after', status: undefined },
      message: `${play.server.httpUrl} cannot be reached: ECONNREFUSED`,
    });
  });

  test('a redirect is not followed: the key goes to no other address', async () => {
    answerInTurn({ status: 302, headers: { location: '/elsewhere' }, body: '' });
    await expect(client().latest()).rejects.toMatchObject({ code: 'network' });
    expect(new Set(play.server.requests)).toEqual(new Set(['/api/pills/latest']));
  });

  test('without an address nothing is asked', async () => {
    const blind = createClient({ key: 'k' });
    await expect(blind.latest()).rejects.toMatchObject({ code: 'not_configured' });
    expect(() => blind.stream({ symbols: '*' })).toThrow(/streamUrl/);
  });

  test.each(['verify', 'history'] as const)('%s, where the server has none', async (method) => {
    const asked = method === 'verify' ? client().verify('A') : client().history({ symbol: 'A' });
    await expect(asked).rejects.toMatchObject({ code: 'endpoint_unavailable', status: 404 });
  });
});
