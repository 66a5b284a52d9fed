import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../../../lib/log.ts';
import { openQuickPool, type QuickPool } from '../../../lib/postgres/quick-pool.ts';
import { createSessionRegistry } from '../../../lib/stream-sessions/registry.ts';
import { createNamespace } from '../../../lib/testing/namespace.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { type Customer, createCustomer, mailsTo, PASSWORD, tokenFor } from '../testing/customer.ts';

let outbox: string;
let base: string;
let api: TestProcess;
let pool: QuickPool;
let alice: Customer;
let bob: Customer;

beforeAll(async () => {
  const namespace = await createNamespace();
  pool = openQuickPool({
    url: namespace.engines.postgresUrl,
    namespace: namespace.name,
    log: silentLog,
    name: 'test',
    connectionsMax: 1,
    timeoutMs: 5_000,
  });
  outbox = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    PUBLIC_URL: base,
    MAIL_OUTBOX: outbox,
    WEBHOOK_ALLOW_LOOPBACK: 'true',
  });
  await api.ready();
  alice = createCustomer(base, outbox, 'alice');
  bob = createCustomer(base, outbox, 'bob');
  await alice.signUp();
  await bob.signUp();
  await alice.subscribe('pro');
  await bob.subscribe('pro');
});

afterAll(async () => {
  await api?.stop();
  await pool?.close();
  await rm(outbox, { recursive: true, force: true });
});

async function latest(key: string): Promise<number> {
  const { statusCode, body } = await request(`${base}/api/pills/latest`, {
    headers: { 'x-api-key': key },
  });
  await body.dump();
  return statusCode;
}

async function makeKey(customer: Customer, more: object = {}) {
  const made = await customer.send('POST', '/api/keys', { name: 'desk', ...more });
  expect(made.status).toBe(201);
  return made.body as { key: string; record: { id: string; hint: string } };
}

describe('keys', () => {
  test('made, used, rotated, revoked: each in force at once', async () => {
    const { key, record } = await makeKey(alice);
    expect(key).toMatch(/^pil_live_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}$/);
    expect(await latest(key)).toBe(404); // no pill was ever received: the key is good
    const rotated = await alice.send('POST', `/api/keys/${record.id}/rotate`, { overlap_s: 3600 });
    expect(rotated.status).toBe(201);
    expect([await latest(key), await latest(rotated.body.key)]).toEqual([404, 404]);
    const revoked = await alice.send('DELETE', `/api/keys/${record.id}`);
    expect(revoked.body).toMatchObject({ live: false, replaced_by: rotated.body.record.id });
    await waitFor('the revocation', async () => (await latest(key)) === 401);
    expect(await latest(rotated.body.key)).toBe(404);
    const list = await alice.send('GET', '/api/keys');
    expect(JSON.stringify(list.body)).not.toContain(key);
  });

  test('a key cannot mint keys, nor see sessions', async () => {
    const { key } = await makeKey(alice);
    const stranger = createCustomer(base, outbox, 'nobody');
    for (const [method, to] of [
      ['GET', '/api/keys'],
      ['POST', '/api/keys'],
      ['GET', '/api/subscription'],
      ['GET', '/api/account/audit'],
    ] as const) {
      const answer = await stranger.send(method, to, undefined, { 'x-api-key': key });
      expect([answer.status, answer.body.code]).toEqual([401, 'session_required']);
    }
    const account = await stranger.send('GET', '/api/account', undefined, { 'x-api-key': key });
    expect(account.body).toMatchObject({ tier: 'pro', limits: { calls_per_day: 10_000 } });
    expect(account.headers['ratelimit-policy']).toContain('"daily";q=10000');
  });

  test.each([
    [{ name: '' }, '#/name'],
    [{ name: `e${'\u0301'.repeat(100)}` }, '#/name'],
    [{ name: 'x'.repeat(101) }, '#/name'],
    [{ name: 'x', scopes: ['write'] }, '#/scopes/0'],
    [{ name: 'x', scopes: [] }, '#/scopes'],
    [{ name: 'x', allow_cidrs: ['10.0.0.0/33'] }, '#/allow_cidrs'],
    [{ name: 'x', allow_cidrs: ['not one'] }, '#/allow_cidrs'],
    [{ name: 'x', expires_at: '2001-01-01T00:00:00Z' }, '#/expires_at'],
    [{ name: 'x', surplus: 1 }, '#/surplus'],
  ])('%j is refused at %s', async (body, pointer) => {
    const answer = await alice.send('POST', '/api/keys', body);
    expect([answer.status, answer.body.code]).toEqual([400, 'body_invalid']);
    expect(answer.body.errors.map((fault: { pointer: string }) => fault.pointer)).toContain(
      pointer,
    );
  });
});

describe('sessions', () => {
  test('the cookie is out of reach of scripts, and a change needs the CSRF token', async () => {
    const carol = createCustomer(base, outbox, 'alice');
    const signedIn = await carol.signIn();
    expect(String(signedIn.headers['set-cookie'])).toMatch(/HttpOnly; SameSite=Lax/);
    const forged = await carol.send('POST', '/api/keys', { name: 'x' }, { 'x-csrf-token': 'no' });
    expect([forged.status, forged.body.code]).toEqual([403, 'csrf_token_invalid']);
    expect((await carol.send('DELETE', '/api/session')).status).toBe(204);
    expect((await carol.send('GET', '/api/session')).status).toBe(401);
  });

  test('an unknown user and a wrong password are one answer', async () => {
    const wrong = await createCustomer(base, outbox, 'alice').signIn('not the password');
    const unknown = await createCustomer(base, outbox, 'nobody').signIn();
    expect(wrong.status).toBe(401);
    expect({ ...wrong.body, request_id: '' }).toEqual({ ...unknown.body, request_id: '' });
  });

  test('a known address signs up like a new one, and its owner is told', async () => {
    const again = await alice.send('POST', '/api/users', {
      email: alice.email,
      password: PASSWORD,
    });
    expect([again.status, again.body]).toEqual([202, { status: 'accepted' }]);
    await waitFor('the mail', async () =>
      (await mailsTo(outbox, alice.email)).some((mail) => mail.includes('You have an account')),
    );
  });

  test('a reset sets the password once and ends all sessions', async () => {
    const dave = createCustomer(base, outbox, 'dave');
    await dave.signUp();
    await dave.send('POST', '/api/password/reset', { email: dave.email });
    const token = await tokenFor(outbox, dave.email, 'A new password');
    const confirm = { token, password: 'another horse battery' };
    const weak = { token, password: 'short' };
    expect((await dave.send('POST', '/api/password/reset/confirm', weak)).status).toBe(400);
    expect((await dave.send('POST', '/api/password/reset/confirm', confirm)).status).toBe(200);
    expect((await dave.send('POST', '/api/password/reset/confirm', confirm)).body.code).toBe(
      'token_invalid',
    );
    expect((await dave.send('GET', '/api/session')).status).toBe(401);
    expect((await dave.signIn()).status).toBe(401);
    expect((await dave.signIn('another horse battery')).status).toBe(200);
  });

  test('attempts are limited, and told when to come back', async () => {
    const eve = createCustomer(base, outbox, 'eve');
    const statuses: number[] = [];
    for (let i = 0; i < 11; i += 1) statuses.push((await eve.signIn('a wrong password')).status);
    expect(statuses.slice(0, 10).every((status) => status === 401)).toBe(true);
    expect(statuses[10]).toBe(429);
  });
});

describe('subscriptions', () => {
  test('tier change and cancellation are in force within a second', async () => {
    const frank = createCustomer(base, outbox, 'frank');
    await frank.signUp();
    const refused = await frank.send('POST', '/api/keys', { name: 'x' });
    expect(refused.body.code).toBe('subscription_required');
    await frank.subscribe('basic');
    const { key } = await makeKey(frank);
    const ticket = () => frank.send('POST', '/api/stream/tickets', undefined, { 'x-api-key': key });
    expect((await ticket()).body).toMatchObject({ code: 'tier_too_low', needs: 'pro' });
    await frank.send('PATCH', '/api/subscription', { tier: 'pro' });
    const issued = await waitFor('the tier', async () => {
      const answer = await ticket();
      return answer.status === 201 && answer;
    });
    expect(issued.body.ticket).toMatch(/^pit_/);
    await frank.send('POST', '/api/subscription/cancel', { at: 'now' });
    await waitFor('the end', async () => (await latest(key)) === 403);
  });

  test('a payment event that is not signed has no effect', async () => {
    const event = { type: 'payment.succeeded' };
    const answer = await alice.send('POST', '/api/billing/events/test', event);
    expect([answer.status, answer.body.code]).toEqual([400, 'billing_event_invalid']);
  });
});

test('usage tells calls by day, key and endpoint', async () => {
  const gina = createCustomer(base, outbox, 'gina');
  await gina.signUp();
  await gina.subscribe('pro');
  const { key, record } = await makeKey(gina);
  for (let i = 0; i < 3; i += 1) await latest(key);
  const usage = await waitFor('the breakdown', async () => {
    const { body } = await gina.send('GET', '/api/usage?days=2');
    return body.by_key.length === 1 && body;
  });
  expect(usage.today).toMatchObject({ used: 3, limit: 10_000, remaining: 9_997 });
  expect(usage.by_key[0]).toMatchObject({ key_id: record.id, calls: 3 });
  expect(usage.by_endpoint).toEqual([{ endpoint: 'GET /api/pills/latest', calls: 3 }]);
  expect(usage.by_day).toHaveLength(2);
});

test('a ticket to support is mailed with the priority of the tier', async () => {
  const sent = await alice.send('POST', '/api/support', { subject: 'Late', message: 'Why?' });
  expect(sent.body).toMatchObject({ priority: 2, channel: 'priority' });
  await waitFor('the mail', async () =>
    (await mailsTo(outbox, 'support@pillole.invalid')).some((mail) =>
      mail.includes('[P2] pro: Late'),
    ),
  );
  const forged = { subject: 'Late\r\nBcc: x@y.z', message: 'Why?' };
  const refused = await alice.send('POST', '/api/support', forged);
  expect(refused.body.errors).toEqual([
    {
      pointer: '#/subject',
      code: 'pattern',
      detail: 'One line, not blank, without control characters.',
    },
  ]);
});

test('closing needs the password, and kills the keys', async () => {
  const hugo = createCustomer(base, outbox, 'hugo');
  await hugo.signUp();
  await hugo.subscribe('basic');
  const { key } = await makeKey(hugo);
  expect((await hugo.send('DELETE', '/api/account', { password: 'wrong' })).status).toBe(401);
  expect((await hugo.send('DELETE', '/api/account', { password: PASSWORD })).status).toBe(204);
  await waitFor('the end', async () => (await latest(key)) === 401);
  expect((await hugo.send('GET', '/api/session')).status).toBe(401);
});

describe('another account’s object is one that does not exist', () => {
  /** For each route with a parameter: what alice has there. A new route must be entered here. */
  const CASES: Readonly<
    Record<
      string,
      {
        body?: object;
        own: () => Promise<string>;
        /** Who tries, where bob's tier is too low to. */
        stranger?: () => Promise<Customer>;
      }
    >
  > = {
    'GET /api/manager/streams/:name': { own: dedicatedOfInes, stranger: jack },
    'POST /api/manager/streams/:name/rotate': { own: dedicatedOfInes, stranger: jack, body: {} },
    'DELETE /api/manager/streams/:name': { own: dedicatedOfInes, stranger: jack },
    'GET /api/webhooks/:id': { own: webhookOfAlice },
    'PATCH /api/webhooks/:id': { own: webhookOfAlice, body: { description: 'taken' } },
    'DELETE /api/webhooks/:id': { own: webhookOfAlice },
    'POST /api/webhooks/:id/test': { own: webhookOfAlice },
    'POST /api/webhooks/:id/rotate-secret': { own: webhookOfAlice, body: {} },
    'GET /api/webhooks/:id/deliveries': { own: webhookOfAlice },
    'GET /api/webhooks/:id/attempts': { own: webhookOfAlice },
    'POST /api/webhooks/:id/deliveries/:message_id/resend': { own: webhookOfAlice },
    'POST /api/webhooks/:id/recover': {
      own: webhookOfAlice,
      body: { since: '2026-11-20T00:00:00Z' },
    },
    'POST /api/webhooks/:id/replay': { own: webhookOfAlice, body: { epoch: 'k7f3' } },
    'GET /api/keys/:id': { own: keyOfAlice },
    'PATCH /api/keys/:id': { own: keyOfAlice, body: { name: 'taken' } },
    'DELETE /api/keys/:id': { own: keyOfAlice },
    'POST /api/keys/:id/rotate': { own: keyOfAlice, body: {} },
    'DELETE /api/stream/sessions/:id': { own: socketOfAlice },
    'POST /api/billing/test/checkouts/:id': {
      async own() {
        const carl = createCustomer(base, outbox, 'carl');
        await carl.signUp();
        return (await carl.send('POST', '/api/subscription/checkout', { tier: 'pro' })).body
          .checkout_id;
      },
      body: { outcome: 'paid' },
    },
  };
  /** Parameters that are no object of an account. */
  const PUBLIC = ['GET /problems/:name', 'POST /api/billing/events/:provider'];

  /** A socket that some stream process has written down. */
  async function socketOfAlice(): Promise<string> {
    const { body } = await alice.send('GET', '/api/account');
    const session = `s_${randomBytes(6).toString('hex')}`;
    const registry = createSessionRegistry(randomBytes(8).toString('hex'), pool, 20);
    const row = { session, accountId: body.id, sessionHash: undefined, hint: 'pil_live_…ab12' };
    const state = { address: '203.0.113.7', openedAt: new Date(), queueMs: 0, queueBytes: 0 };
    const opened = [{ ...row, ...state, encoding: 'json' as const }];
    await registry.write({ opened, closed: [], lags: [] });
    return session;
  }

  async function institutional(name: string): Promise<Customer> {
    const customer = createCustomer(base, outbox, name);
    if ((await customer.signIn()).status === 200) return customer;
    await customer.signUp();
    await customer.subscribe('institutional');
    // A change of the tier is in force within a second, not at once.
    await waitFor('the tier to be in force', async () => {
      return (await customer.send('GET', '/api/manager/streams')).status === 200;
    });
    return customer;
  }
  async function dedicatedOfInes(): Promise<string> {
    const ines = await institutional('ines');
    return (await ines.send('POST', '/api/manager/streams', { label: 'desk' })).body.name;
  }
  function jack(): Promise<Customer> {
    return institutional('jack');
  }

  let webhook: Promise<string> | undefined;
  /** One for all cases: none of them may change it, and Pro has five. */
  function webhookOfAlice(): Promise<string> {
    webhook ??= alice
      .send('POST', '/api/webhooks', {
        url: 'http://127.0.0.1:9/hook',
        event_types: ['pill.published'],
      })
      .then(({ body }) => body.endpoint.id);
    return webhook;
  }

  async function keyOfAlice(): Promise<string> {
    return (await makeKey(alice)).record.id;
  }

  test('every route with a parameter has its case', async () => {
    const { body } = await alice.send('GET', '/docs/json');
    const routes = Object.entries(body.paths as Record<string, object>).flatMap(([to, methods]) =>
      Object.keys(methods).map(
        (method) => `${method.toUpperCase()} ${to.replaceAll(/\{(\w+)\}/g, ':$1')}`,
      ),
    );
    const withParameter = routes.filter((route) => route.includes(':'));
    expect(withParameter.sort()).toEqual([...Object.keys(CASES), ...PUBLIC].sort());
  });

  test.each(Object.keys(CASES))('%s', async (route) => {
    const { own, body, stranger = async () => bob } = CASES[route]!;
    const id = await own();
    const asked = await stranger();
    const [method, pattern] = route.split(' ') as [string, string];
    /** A further parameter is of something inside it. */
    const at = (object: string) => pattern.replace(/:\w+/, object).replace(/:\w+/, 'msg_inside');
    const theirs = await asked.send(method, at(id), body);
    const none = await asked.send(method, at(id.replace(/_.*/, '_aaaaaaaaaaaa')), body);
    expect([theirs.status, theirs.body.code]).toEqual([404, 'object_not_found']);
    expect({ ...theirs.body, request_id: '' }).toEqual({ ...none.body, request_id: '' });
  });
});

test('nothing the process wrote holds a key, a password or a token', async () => {
  const { key } = await makeKey(alice);
  await latest(key);
  await latest('pil_live_not_one_at_all');
  const { cookie, 'x-csrf-token': csrf } = alice.credentials();
  const { ticket } = (await alice.send('POST', '/api/stream/tickets')).body;
  const mailed = await tokenFor(outbox, alice.email, 'Verify');
  const output = api.output();
  expect(output).not.toMatch(/pil_live_[0-9A-Za-z]{32}/);
  for (const secret of [key, PASSWORD, cookie!.split('=')[1]!, csrf!, ticket, mailed]) {
    expect(secret.length).toBeGreaterThan(15);
    expect(output).not.toContain(secret);
  }
});
