import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import type { Namespace } from '../../../testing/namespace.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Answer, Customer } from '../testing/customer.ts';

let accounts: AccountApi;
let namespace: Namespace;
let db: Database;
let alice: Customer;

beforeAll(async () => {
  accounts = await openAccountApi();
  namespace = accounts.namespace;
  db = openTestDatabase(namespace);
  alice = await accounts.customer('alice', 'pro');
});

afterAll(async () => {
  await accounts?.close();
  await db?.destroy();
});

async function byKey(key: string, route: string, body?: object): Promise<Answer> {
  const [method, to] = route.split(' ') as [string, string];
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const answered = await request(`${accounts.base}${to}`, {
    method: method as 'GET',
    headers: { 'x-api-key': key, ...json },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answered.body.text();
  const parsed = text === '' ? null : JSON.parse(text);
  return { status: answered.statusCode, headers: answered.headers, body: parsed };
}

function expectLimits({ headers }: Answer, perDay: number, what: string): void {
  expect(headers['ratelimit-policy'], what).toMatch(
    new RegExp(`^"daily";q=${perDay};w=86400, "burst";q=\\d+;w=\\d+$`),
  );
  expect(headers.ratelimit, what).toMatch(/^"daily";r=\d+;t=\d+, "burst";r=\d+;t=\d+$/);
}

test.each([
  ['GET /api/account', 200],
  ['GET /api/usage', 200],
  ['GET /api/usage?days=0', 400],
  ['GET /api/usage?nope=1', 400],
  ['GET /api/pills/latest', 404],
  ['GET /api/pills/latest?symbols=,', 400],
  ['GET /api/pills/latest?symbols=7203.T,,0700.HK', 400],
  ['POST /api/stream/tickets', 403],
  ['POST /api/support', 400],
] as const)('by key, on Basic: %s answers %i with the limits', async (route, status) => {
  const { key } = await createTestAccount(db, namespace, { tier: 'basic' });
  const answer = await byKey(key, route, route === 'POST /api/support' ? {} : undefined);
  expect(answer.status).toBe(status);
  expectLimits(answer, 1_000, route);
});

test('the fault of an empty symbol in a list names the parameter', async () => {
  const { key } = await createTestAccount(db, namespace, { tier: 'basic' });
  const { body } = await byKey(key, 'GET /api/pills/latest?symbols=,');
  expect(body).toMatchObject({
    code: 'parameter_invalid',
    remedy: expect.stringContaining('`errors`'),
    errors: [{ parameter: 'symbols', code: 'symbol_malformed' }],
  });
});

test('refusals for a missing scope and for too low a tier show the limits', async () => {
  const { key } = await createTestAccount(db, namespace, { tier: 'pro', scopes: ['stream'] });
  const scope = await byKey(key, 'GET /api/pills/latest');
  expect([scope.status, scope.body.code]).toEqual([403, 'scope_missing']);
  expectLimits(scope, 10_000, 'scope_missing');
  const basic = await createTestAccount(db, namespace, { tier: 'basic' });
  const tier = await byKey(basic.key, 'POST /api/stream/tickets');
  expect(tier.body).toMatchObject({
    code: 'tier_too_low',
    needs: 'pro',
    detail: 'Pro API is required for this call; the account has Basic API.',
  });
});

test('a 429 of the burst limit shows the daily limit too, and vice versa', async () => {
  const slow = await createTestAccount(db, namespace, { tier: 'pro', ratePerS: 1, rateBurst: 1 });
  // At once: one after another, a token could refill in between on a slow machine.
  const calls = Array.from({ length: 30 }, () => byKey(slow.key, 'GET /api/pills/latest'));
  const burst = (await Promise.all(calls)).find(({ status }) => status === 429)!;
  expect([burst.status, burst.body.code]).toEqual([429, 'rate_limited']);
  expectLimits(burst, 10_000, 'burst');
  const spent = await createTestAccount(db, namespace, { tier: 'pro', callsPerDay: 1 });
  await byKey(spent.key, 'GET /api/pills/latest');
  const daily = await byKey(spent.key, 'GET /api/pills/latest');
  expect([daily.status, daily.body.code]).toEqual([429, 'daily_quota_exceeded']);
  expectLimits(daily, 1, 'daily');
});

test.each([
  ['GET /api/account', undefined, 200],
  ['GET /api/keys', undefined, 200],
  ['GET /api/keys/key_aaaaaaaaaaaa', undefined, 404],
  ['GET /api/usage?days=x', undefined, 400],
  ['GET /api/subscription', undefined, 200],
  ['POST /api/keys', { name: 'desk' }, 201],
  ['POST /api/keys', { name: '' }, 400],
  ['POST /api/subscription/checkout', { tier: 'pro' }, 409],
  ['POST /api/stream/tickets', undefined, 201],
] as const)('by session, on Pro: %s %j answers %i with the limits', async (route, body, status) => {
  const [method, to] = route.split(' ') as [string, string];
  const answer = await alice.send(method, to, body);
  expect(answer.status).toBe(status);
  expectLimits(answer, 10_000, route);
});

test('the refusal of a change without the CSRF token shows the limits', async () => {
  const answer = await alice.send('POST', '/api/keys', { name: 'x' }, { 'x-csrf-token': 'no' });
  expect([answer.status, answer.body.code]).toEqual([403, 'csrf_token_invalid']);
  expectLimits(answer, 10_000, 'csrf');
});

test('no limits are shown without a subscription or without a known account', async () => {
  const { key } = await createTestAccount(db, namespace, { tier: null });
  const none = await byKey(key, 'GET /api/pills/latest');
  expect([none.status, none.body.code]).toEqual([403, 'subscription_required']);
  const unknown = await byKey('pil_live_x', 'GET /api/pills/latest');
  expect(unknown.headers['www-authenticate']).toBe('ApiKey realm="pillole", header="X-API-Key"');
  for (const { headers } of [none, unknown]) expect(headers.ratelimit).toBeUndefined();
  const session = await accounts.stranger('nobody').send('GET', '/api/keys');
  expect(session.headers['www-authenticate']).toMatch(/^Cookie realm="pillole"/);
});

test('a suspended account gets the reason at GET /api/account and in every refusal', async () => {
  const { id, key } = await createTestAccount(db, namespace, { tier: 'pro' });
  await byKey(key, 'GET /api/pills/latest');
  const reason = 'The invoice of May is unpaid.';
  await db
    .updateTable('accounts')
    .set({ status: 'suspended', suspended_reason: reason })
    .where('id', '=', id)
    .execute();
  const refused = await waitFor('the suspension', async () => {
    const answer = await byKey(key, 'GET /api/pills/latest');
    return answer.status === 403 && answer;
  });
  expect(refused.body).toMatchObject({
    code: 'account_suspended',
    reason: 'operator',
    detail: expect.stringContaining(`suspended the account: ${reason} To write to us`),
    remedy: expect.stringContaining('POST /api/support'),
  });
  const account = await byKey(key, 'GET /api/account');
  const { detail, still_works } = refused.body;
  expect(account.body).toMatchObject({
    status: 'suspended',
    suspended_reason: reason,
    suspension: { reason: 'operator', detail, still_works },
    support: 'priority',
  });
  // The advice is true: the ticket has the priority of the tier, and the reads are answered.
  const body = { subject: 'Suspended', message: 'The invoice is paid.' };
  const ticket = await byKey(key, 'POST /api/support', body);
  expect([ticket.status, ticket.body.priority]).toEqual([202, 2]);
  for (const call of ['GET /api/usage', 'GET /api/webhooks']) {
    expect(still_works).toContain(call);
    expect((await byKey(key, call)).status, call).toBe(200);
  }
});
