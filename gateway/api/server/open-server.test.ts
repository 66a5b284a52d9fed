import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FOREIGN_HEADS, LOCAL_HEADS } from '../../../testing/foreign-heads.ts';
import { jsonOf } from '../../../testing/ingest-process.ts';
import { startProcess } from '../../../testing/process.ts';
import { sendRaw } from '../../../testing/raw-http.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';

let accounts: AccountApi;

beforeAll(async () => {
  accounts = await openAccountApi();
});
afterAll(() => accounts?.close());

/** Sends an empty sign-in with these header lines, and nothing that an HTTP client would add. */
async function signIn(base: string, lines: readonly string[], version = '1.1') {
  const head = [`POST /api/session HTTP/${version}`, 'Content-Length: 2', ...lines];
  const text = `${head.join('\r\n')}\r\nContent-Type: application/json\r\n\r\n{}`;
  return jsonOf(await sendRaw(Number(new URL(base).port), text));
}

/** A request that has passed reaches the route, which misses the password. */
const PASSED = { status: 400, code: 'body_invalid' };

describe('on this machine, where tiers are free', () => {
  test.each(FOREIGN_HEADS)('%s is refused', async (_name, lines, code) => {
    expect(await signIn(accounts.base, lines)).toMatchObject({ status: 403, code });
  });

  test.each([
    ...LOCAL_HEADS,
    ['a page of this machine', ['Host: localhost', 'Origin: http://127.0.0.1:3000']] as const,
    ['a page of this machine by IPv6', ['Host: [::1]:1', 'Origin: http://[::1]:1']] as const,
  ])('%s passes', async (_name, lines) => {
    expect(await signIn(accounts.base, lines)).toMatchObject(PASSED);
  });

  test('without Host, HTTP/1.0 passes and HTTP/1.1 is malformed', async () => {
    expect(await signIn(accounts.base, [], '1.0')).toMatchObject(PASSED);
    expect(await signIn(accounts.base, [])).toMatchObject({ status: 400, code: 'http_malformed' });
  });

  test.each(['/', '/docs/', '/openapi.json', '/api/status', '/health', '/no-such-path'])(
    'GET %s is refused for another name',
    async (url) => {
      const { port } = new URL(accounts.base);
      const answer = await sendRaw(
        Number(port),
        `GET ${url} HTTP/1.1\r\nHost: rebound.example\r\n\r\n`,
      );
      expect([answer.status, jsonOf(answer).code]).toEqual([403, 'local_only']);
    },
  );

  test('metrics are refused for another name', async () => {
    const { port } = new URL(accounts.api.opsUrl);
    const get = (host: string) =>
      sendRaw(
        Number(port),
        `GET /metrics.json HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
    expect((await get('rebound.example')).status).toBe(403);
    expect((await get('localhost')).status).toBe(200);
  });

  test('one line of the start log says what is open and why', () => {
    const lines = accounts.api
      .output()
      .split('\n')
      .filter((line) => line.includes('"open: '));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      '"open: every tier without payment (every address is of this machine); ' +
        'what became of pills, without a credential ' +
        '(no INGEST_CREDENTIALS_FILE, and every address is of this machine)"',
    );
  });
});

test('behind a TLS proxy any name and its headers pass, cookies are Secure, and no tier is free', async () => {
  const env = { PUBLIC_URL: 'https://api.example.com', TRUSTED_PROXIES: '127.0.0.1' };
  const base = await accounts.start(env);
  const lines = ['Host: api.example.com', 'X-Forwarded-For: 192.0.2.1'];
  expect(await signIn(base, [...lines, 'Origin: https://example.com'])).toMatchObject(PASSED);
  const customer = accounts.stranger('behind-a-proxy', base);
  await customer.signUp();
  expect(String((await customer.signIn()).headers['set-cookie'])).toMatch(/; Secure\b/);
  const bought = await customer.send('POST', '/api/subscription/checkout', { tier: 'pro' });
  expect([bought.status, bought.body.code]).toEqual([503, 'billing_off']);
});

test('a start that would lay the API open ends, and names the setting', async () => {
  const env = accounts.namespace.env;
  for (const [settings, message] of [
    [{ API_HOST: '0.0.0.0' }, /API_PUBLIC=yes/],
    [{ API_HOST: '0.0.0.0', API_PUBLIC: 'yes' }, /set PUBLIC_URL .+ lack Secure/],
    [{ TRUSTED_PROXIES: '127.0.0.1' }, /set PUBLIC_URL .+ lack Secure/],
    [{ PUBLIC_URL: 'http://api.example.com' }, /PUBLIC_URL http:\/\/api.example.com must be https/],
    [{ METRICS_HOST: '0.0.0.0' }, /METRICS_PUBLIC=yes/],
  ] as const) {
    const process = await startProcess('gateway/api/main.js', [], { ...env, ...settings });
    expect(await process.exited).toBe(2);
    expect(process.output()).toMatch(/^api cannot start: [^\n]+\n$/);
    expect(process.output()).toMatch(message);
  }
});
