import { request } from 'undici';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import { type FrontProxy, openFrontProxy } from '../../../testing/front-proxy.ts';
import { waitFor } from '../../../testing/wait.ts';
import { UNMETERED_OF_NETWORK } from '../limits.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';

const CUSTOMER = '203.0.113.7';
const STRANGER = '198.51.100.7';

let accounts: AccountApi;
let db: Database;
/** An API that trusts proxies elsewhere only. */
let wary: string;
const proxies: FrontProxy[] = [];

beforeAll(async () => {
  accounts = await openAccountApi({
    TRUSTED_PROXIES: '127.0.0.1',
    PUBLIC_URL: 'https://api.test',
  });
  db = openTestDatabase(accounts.namespace);
  wary = await accounts.start({
    TRUSTED_PROXIES: '10.0.0.0/8',
    PUBLIC_URL: 'https://api.test',
  });
});

afterEach(() => {
  for (const proxy of proxies.splice(0)) proxy.close();
});

afterAll(async () => {
  await accounts?.close();
  await db?.destroy();
});

/** The address of a proxy in front of the API, for clients that come from `client`. */
async function proxied(client: string, base = accounts.base): Promise<string> {
  const proxy = openFrontProxy('x-forwarded-for', Number(new URL(base).port));
  proxies.push(proxy);
  return `http://127.0.0.1:${await proxy.portFor(client)}`;
}

async function statusOf(base: string, headers: Record<string, string>) {
  const { statusCode, body } = await request(`${base}/api/account`, { headers });
  await body.dump();
  return statusCode;
}

test('the networks of a key are compared with the client, not with the proxy', async () => {
  const { key } = await createTestAccount(db, accounts.namespace, {
    tier: 'pro',
    allowCidrs: [`${CUSTOMER}/32`],
  });
  const known = { 'x-api-key': key };
  const claim = { ...known, 'x-forwarded-for': CUSTOMER };
  const behind = await proxied(CUSTOMER);
  await waitFor('the key to be known', async () => (await statusOf(behind, known)) === 200);
  expect(await statusOf(await proxied(STRANGER), known)).toBe(403);
  expect(await statusOf(await proxied(STRANGER), claim)).toBe(403);
  expect(await statusOf(await proxied(CUSTOMER, wary), known)).toBe(403);
  expect(await statusOf(wary, claim)).toBe(403);
});

test('the limits of an address count the client', async () => {
  const cookie = { cookie: 'session=x' };
  const flooding = await proxied('192.0.2.1');
  await waitFor('a refusal', async () => {
    const calls = Array.from({ length: UNMETERED_OF_NETWORK.burst + 1 }, () =>
      statusOf(flooding, cookie),
    );
    return (await Promise.all(calls)).includes(429);
  });
  expect(await statusOf(await proxied('192.0.2.2'), cookie)).toBe(401);
});
