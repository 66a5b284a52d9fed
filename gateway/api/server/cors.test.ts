import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../../lib/config/config.ts';
import { readOrigins } from '../../http/origins.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Customer } from '../testing/customer.ts';
import { EXPOSED_HEADERS } from './cors.ts';

const DESK = 'https://desk.example';
const FOREIGN = 'https://evil.example';

let accounts: AccountApi;
let publicApi: string;
let customer: Customer;
let operations: readonly Operation[];

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly security: readonly object[];
  readonly responses: Readonly<Record<string, { readonly headers?: object }>>;
}

beforeAll(async () => {
  accounts = await openAccountApi({ STREAM_ORIGINS: DESK });
  // With a public address; a local API refuses foreign origins before anything else.
  publicApi = await accounts.start({ PUBLIC_URL: 'https://api.example', BILLING: 'off' });
  customer = await accounts.customer('cors');
  const { paths } = (await (await request(`${publicApi}/openapi.json`)).body.json()) as {
    readonly paths: Record<string, Record<string, Operation>>;
  };
  operations = Object.entries(paths).flatMap(([path, of]) =>
    Object.entries(of).map(([method, one]) => ({ ...one, path, method: method.toUpperCase() })),
  );
});
afterAll(() => accounts?.close());

/** The CORS headers of an answer. */
async function ask(
  path: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  base = publicApi,
) {
  const answer = await request(`${base}${path}`, { method: method as 'GET', headers });
  await answer.body.dump();
  const of = (name: string) => answer.headers[name];
  return {
    status: answer.statusCode,
    origin: of('access-control-allow-origin'),
    credentials: of('access-control-allow-credentials'),
    methods: of('access-control-allow-methods'),
    exposed: of('access-control-expose-headers'),
    vary: of('vary'),
    maxAge: of('access-control-max-age'),
    allowed: of('access-control-allow-headers'),
    setCookie: of('set-cookie'),
  };
}

const preflight = (path: string, method: string, origin = DESK) =>
  ask(path, 'OPTIONS', { origin, 'access-control-request-method': method });

describe('pages of other origins', () => {
  test('a preflight of an allowed origin: methods, headers, and for how long', async () => {
    expect(await preflight('/api/pills?symbol=7203.T', 'GET')).toMatchObject({
      status: 204,
      origin: DESK,
      credentials: undefined,
      methods: 'GET, HEAD',
      allowed:
        'X-API-Key, Content-Type, If-None-Match, ' +
        'Authorization, Signature, Signature-Input, Content-Digest',
      maxAge: '7200',
      vary: 'Origin',
    });
    expect(await preflight('/api/pills', 'GET', 'http://localhost:3000')).toMatchObject({
      origin: 'http://localhost:3000',
    });
  });

  test.each([FOREIGN, 'null', `${DESK}.evil.example`, 'http://desk.example', `${DESK}:444`])(
    'an origin that is not listed, %s, can read nothing',
    async (origin) => {
      expect(await preflight('/api/pills', 'GET', origin)).toMatchObject({
        status: 405,
        origin: undefined,
      });
      const status = await ask('/api/status', 'GET', { origin });
      expect(status).toMatchObject({ status: 200, origin: undefined, exposed: undefined });
      expect(status.vary).toBe('Origin');
    },
  );

  test('all that a key may do is opened, and nothing that needs a session or begins one', async () => {
    expect(operations.length).toBeGreaterThan(50);
    for (const { method, path, security } of operations) {
      const { origin, credentials } = await preflight(path.replaceAll(/\{\w+\}/g, 'x'), method);
      const isOpen = security.length === 0 ? method === 'GET' : security.some((by) => 'key' in by);
      expect([method, path, origin, credentials]).toEqual([
        ...[method, path, isOpen ? DESK : undefined, undefined],
      ]);
    }
  });

  test('a page gets no session by CORS, and none of the answers to one', async () => {
    const { cookie = '' } = customer.credentials();
    expect(cookie).not.toBe('');
    for (const [path, method] of [
      ['/api/session', 'GET'],
      ['/api/keys', 'GET'],
      ['/api/session', 'POST'],
      ['/api/users', 'POST'],
    ] as const) {
      const answer = await ask(path, method, { origin: DESK, cookie }, accounts.base);
      expect([path, answer.origin, answer.credentials, answer.setCookie]).toEqual([
        ...[path, undefined, undefined, undefined],
      ]);
    }
    // Also routes for both a key and a session do not open the session.
    const account = await ask('/api/account', 'GET', { origin: DESK, cookie }, accounts.base);
    expect(account).toMatchObject({
      status: 200,
      origin: DESK,
      credentials: undefined,
    });
  });

  test.each([
    ['/api/pills/latest', 401],
    ['/api/status', 200],
    ['/no-such-path', 404],
    ['/api/status?a=1&%zz', 200],
  ])('GET %s is readable with its status, %i, and its headers', async (path, status) => {
    const answer = await ask(path, 'GET', { origin: DESK });
    expect(answer).toMatchObject({ status, origin: DESK, exposed: EXPOSED_HEADERS.join(', ') });
    expect(answer.vary).toContain('Origin');
  });

  test('every documented header can be read', () => {
    // The operations of ingest have a server of their own, which no web page reads.
    const own = operations.filter(({ path }) => !path.startsWith('/api/pillole'));
    expect(own.length).toBe(operations.length - 2);
    const documented = own.flatMap(({ responses }) =>
      Object.values(responses).flatMap(({ headers = {} }) => Object.keys(headers)),
    );
    expect(documented).toContain('RateLimit');
    const exposed = EXPOSED_HEADERS.map((name) => name.toLowerCase());
    const isMissing = (name: string) => !exposed.includes(name.toLowerCase());
    expect(new Set(documented.filter(isMissing))).toEqual(new Set());
  });

  test('OPTIONS without a preflight is answered as before', async () => {
    expect((await ask('/api/pills', 'OPTIONS', {})).status).toBe(405);
    expect((await ask('/api/pills', 'OPTIONS', { origin: DESK })).status).toBe(405);
    expect((await ask('/no-such-path', 'OPTIONS', {})).status).toBe(404);
  });

  test('an API of this machine alone refuses foreign origins, but not those of the list', async () => {
    const status = async (origin: string) => {
      const answer = await request(`${accounts.base}/api/status`, { headers: { origin } });
      await answer.body.dump();
      return [answer.statusCode, answer.headers['access-control-allow-origin']];
    };
    expect(await status(FOREIGN)).toEqual([403, undefined]);
    expect(await status(DESK)).toEqual([200, DESK]);
  });
});

test.each([
  ['', []],
  ['https://desk.example, http://desk.example:8080', [DESK, 'http://desk.example:8080']],
])('STREAM_ORIGINS %j', (text, expected) => {
  expect(readConfig({ STREAM_ORIGINS: text }, readOrigins)).toEqual(expected);
});

test.each(['https://desk.example/', 'desk.example', '*', 'null', 'https://DESK.example', 'ws://a'])(
  'STREAM_ORIGINS %j is refused at the start',
  (text) => {
    expect(() => readConfig({ STREAM_ORIGINS: text }, readOrigins)).toThrow(
      `must list origins such as https://desk.example, not "${text}"`,
    );
  },
);
