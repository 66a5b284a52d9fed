import net from 'node:net';
import { fetch as undiciFetch } from 'undici';
import { describe, expect, test } from 'vitest';
import type { Client } from '../client.ts';
import type { PilloleError } from '../error.ts';
import { createClient } from '../index.ts';
import { pillAt } from '../testing/scripted-frames.ts';
import { type HttpAnswer, NOT_FOUND } from '../testing/scripted-server.ts';
import { useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();
const LATEST = { data: pillAt(5, 4), position: 'e1:0-5' };

const client = () => createClient({ apiUrl: fixture.server.httpUrl, key: 'pil_live_key' });

/** Answers each request with the next of a list, and all later ones with the last. */
function answerInTurn(...answers: readonly HttpAnswer[]) {
  let turn = 0;
  fixture.server.answer(() => answers[Math.min(turn++, answers.length - 1)]!);
}

const TOO_FAST = {
  status: 429,
  body: {
    type: '/problems/rate',
    title: 'Too many calls a second',
    status: 429,
    code: 'rate_exceeded',
    retry: 'after',
    retry_after_s: 1,
    detail: '10 a second.',
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
    [
      'history(newest)',
      ({ history }) => history({ symbols: ['A', 'B'], order: 'desc', limit: 5 }),
      '/api/pills?symbols=A%2CB&order=desc&limit=5',
    ],
    ['history(next)', ({ history }) => history({ next: '/api/pills?page=2' }), '/api/pills?page=2'],
    ['history(next)', ({ history }) => history({ next: 'abc' }), '/api/pills?page=abc'],
  ])('%s requests its path, with the key in the header', async (_, ask, path) => {
    const keys: unknown[] = [];
    fixture.server.answer((_url, request) => {
      keys.push(request.headers['x-api-key']);
      return { body: LATEST };
    });
    expect(await ask(client())).toEqual(LATEST);
    expect(fixture.server.requests).toEqual([path]);
    expect(keys).toEqual(['pil_live_key']);
  });

  test('history over a time range uses the largest pages, since each page is a call', async () => {
    fixture.server.answer(() => ({ body: { data: [pillAt(5, 4)], next: null, as_of: {} } }));
    for await (const { cursor } of client().history('A', '2026-11-20T00:00:00Z')) {
      expect(cursor).toBe('0-5');
    }
    expect(fixture.server.requests).toEqual([
      '/api/pills?symbol=A&from=2026-11-20T00%3A00%3A00Z&limit=5000',
    ]);
  });

  test('history of several symbols, newest first, follows `next` as it is', async () => {
    const next = '/api/pills?symbols=A%2CB&order=desc&page=x';
    answerInTurn(
      { body: { data: [pillAt(5, 4)], next, as_of: {} } },
      { body: { data: [pillAt(4, 3)], next: null, as_of: {} } },
    );
    const from = '2026-11-20T00:00:00Z';
    const cursors: string[] = [];
    for await (const { cursor } of client().history(['A', 'B'], from, undefined, 'desc')) {
      cursors.push(cursor);
    }
    expect(cursors).toEqual(['0-5', '0-4']);
    expect(fixture.server.requests).toEqual([
      '/api/pills?symbols=A%2CB&from=2026-11-20T00%3A00%3A00Z&order=desc&limit=5000',
      next,
    ]);
  });

  test('429 with a short Retry-After is repeated, not before that time', async () => {
    answerInTurn({ ...TOO_FAST, headers: { 'retry-after': '1' } }, { body: LATEST });
    const began = performance.now();
    expect(await client().latest()).toEqual(LATEST);
    expect(performance.now() - began).toBeGreaterThanOrEqual(990);
    expect(fixture.server.requests).toHaveLength(2);
  });

  test('429 with a long Retry-After is thrown at once, with the time to wait', async () => {
    answerInTurn({ ...TOO_FAST, headers: { 'retry-after': '3600' } });
    await expect(client().latest()).rejects.toMatchObject({
      name: 'PilloleError',
      code: 'rate_exceeded',
      status: 429,
      retry: 'after',
      retryAfterMs: 3_600_000,
      problem: { title: 'Too many calls a second' },
      message: 'Too many calls a second. 10 a second.',
    });
    expect(fixture.server.requests).toHaveLength(1);
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

  test('a transient failure is tried three times, then thrown', async () => {
    answerInTurn({ status: 503, body: '<html>away</html>' });
    const error = { code: 'http_503', status: 503, retry: 'after' };
    await expect(client().latest()).rejects.toMatchObject(error);
    expect(fixture.server.requests).toHaveLength(3);
  });

  test.each([400, 401, 403, 404, 500])('%i is not repeated', async (status) => {
    answerInTurn({ status, body: { ...(NOT_FOUND.body as object), status, code: 'refused' } });
    await expect(client().latest()).rejects.toMatchObject({
      code: 'refused',
      status,
      retry: 'never',
    });
    expect(fixture.server.requests).toHaveLength(1);
  });

  test.each([
    ['a page', { body: '<!doctype html>' }],
    ['no such file', { status: 404, body: 'Not Found' }],
    ['another API', { status: 400, body: { error: 'no such route' } }],
  ])(
    '%s: the error says that the server is not pillole, and is not repeated',
    async (_, answer) => {
      answerInTurn(answer);
      const message = expect.stringContaining(`${fixture.server.httpUrl} is not an API of pillole`);
      await expect(client().latest()).rejects.toMatchObject({ code: 'not_pillole', message });
      expect(fixture.server.requests).toHaveLength(1);
    },
  );

  test.each([
    ["Node's fetch", globalThis.fetch],
    ['the fetch of undici', undiciFetch as typeof globalThis.fetch],
  ])('a server that does not speak HTTP is named too, with %s', async (_, fetch) => {
    const other = net.createServer((socket) => {
      // After the whole request, and without an end, as a mail server answers: the client may notice the
      // end of a connection before its last bytes.
      let head = '';
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        head += bytes;
        if (head.endsWith('\r\n\r\n')) socket.write('220 mail.test ESMTP\r\n');
      });
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const apiUrl = `http://127.0.0.1:${(other.address() as net.AddressInfo).port}`;
    const elsewhere = createClient({ apiUrl, key: 'k', fetch });
    const error: PilloleError = await elsewhere.latest().then(
      () => expect.fail(),
      (reason) => reason,
    );
    expect(`${error.code}: ${error.message}`).toMatch(
      /^not_pillole: http:\/\/127.* it does not speak http:\/\//,
    );
    other.close();
  });

  test('the path of another service of the platform: the error names the address', async () => {
    answerInTurn(NOT_FOUND);
    await expect(client().latest()).rejects.toMatchObject({
      code: 'endpoint_unavailable',
      message: expect.stringContaining('Check that apiUrl is the address of the API'),
    });
  });

  test.each([
    ['no key', undefined, 'key_missing'],
    ['an empty key', '', 'key_missing'],
    ['a key with a line break', 'pil_live_key\n', 'key_malformed'],
  ])('%s: a call fails at once, without a request', async (_, key, code) => {
    const keyless = createClient({ apiUrl: fixture.server.httpUrl, streamUrl: 'ws://a', key });
    await expect(keyless.latest()).rejects.toMatchObject({ code });
    expect(() => keyless.stream({ symbols: '*' })).toThrow(expect.objectContaining({ code }));
    expect(fixture.server.requests).toEqual([]);
  });

  test('status needs no key', async () => {
    answerInTurn({ body: { status: 'ok' } });
    const keyless = createClient({ apiUrl: fixture.server.httpUrl });
    expect(await keyless.status()).toEqual({ status: 'ok' });
  });

  test('an unreachable server: the error names the address and the cause', async () => {
    await fixture.server.close();
    await expect(client().latest()).rejects.toMatchObject({
      code: 'network',
      retry: 'after',
      status: undefined,
      message: `${fixture.server.httpUrl} cannot be reached: ECONNREFUSED`,
    });
  });

  test('a redirect is not followed: the key is sent to no other address', async () => {
    answerInTurn({ status: 302, headers: { location: '/elsewhere' }, body: '' });
    await expect(client().latest()).rejects.toMatchObject({ code: 'network' });
    expect(new Set(fixture.server.requests)).toEqual(new Set(['/api/pills/latest']));
  });

  test('without an address nothing is requested', async () => {
    const blind = createClient({ key: 'k' });
    await expect(blind.latest()).rejects.toMatchObject({ code: 'not_configured' });
    expect(() => blind.stream({ symbols: '*' })).toThrow(/streamUrl/);
  });

  test.each(['verify', 'history'] as const)(
    '%s of a server without the endpoint: endpoint_unavailable',
    async (method) => {
      const asked = method === 'verify' ? client().verify('A') : client().history({ symbol: 'A' });
      await expect(asked).rejects.toMatchObject({ code: 'endpoint_unavailable', status: 404 });
    },
  );
});
