import { randomBytes } from 'node:crypto';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { s3 } from '../../../domain/destinations/s3/s3-type.ts';
import { createSessionRegistry } from '../../../domain/stream-sessions/session-registry.ts';
import { silentLog } from '../../../lib/log/log.ts';
import { openStatementPool, type StatementPool } from '../../../lib/postgres/statement-pool.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import { type Customer, mailsTo, PASSWORD, tokenFor } from '../testing/customer.ts';

let accounts: AccountApi;
let pool: StatementPool;
let alice: Customer;
let bob: Customer;

beforeAll(async () => {
  accounts = await openAccountApi({ WEBHOOK_ALLOW_LOOPBACK: 'true' });
  const { namespace } = accounts;
  pool = openStatementPool({
    url: namespace.engines.postgresUrl,
    namespace: namespace.name,
    log: silentLog,
    name: 'test',
    connectionsMax: 1,
    timeoutMs: 30_000,
  });
  // By the API: her mailed token is one of the secrets that no log may contain.
  alice = accounts.stranger('alice');
  await alice.signUp();
  await alice.subscribe('pro');
  bob = await accounts.customer('bob', 'pro');
});

afterAll(async () => {
  await accounts?.close();
  await pool?.close();
});

/** Reads the latest pill. A 503 of a busy database counts no call, so the read is repeated. */
function latest(key: string): Promise<number> {
  return waitFor('an answer to the key', async () => {
    const { statusCode, body } = await request(`${accounts.base}/api/pills/latest`, {
      headers: { 'x-api-key': key },
    });
    const text = await body.text();
    return statusCode === 503 ? text : statusCode;
  });
}

async function makeKey(customer: Customer, more: object = {}) {
  const made = await customer.send('POST', '/api/keys', { name: 'desk', ...more });
  expect(made.status).toBe(201);
  return made.body as { key: string; record: { id: string; hint: string } };
}

describe('keys', () => {
  test('created, used, rotated, revoked: each in effect at once', async () => {
    const { key, record } = await makeKey(alice);
    expect(key).toMatch(/^pil_live_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}$/);
    expect(await latest(key)).toBe(404); // No pill was ever received, but the key is valid.
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

  test('a key can neither create keys nor read sessions', async () => {
    const { key } = await makeKey(alice);
    const stranger = accounts.stranger('nobody');
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
  test('the cookie is hidden from scripts, and a change needs the CSRF token', async () => {
    const carol = accounts.stranger('alice');
    const signedIn = await carol.signIn();
    expect(String(signedIn.headers['set-cookie'])).toMatch(/HttpOnly; SameSite=Lax/);
    const forged = await carol.send('POST', '/api/keys', { name: 'x' }, { 'x-csrf-token': 'no' });
    expect([forged.status, forged.body.code]).toEqual([403, 'csrf_token_invalid']);
    expect((await carol.send('DELETE', '/api/session')).status).toBe(204);
    expect((await carol.send('GET', '/api/session')).status).toBe(401);
  });

  test('an unknown user and a wrong password get the same answer', async () => {
    const wrong = await accounts.stranger('alice').signIn('not the password');
    const unknown = await accounts.stranger('nobody').signIn();
    expect(wrong.status).toBe(401);
    expect({ ...wrong.body, request_id: '' }).toEqual({ ...unknown.body, request_id: '' });
  });

  test('a known address signs up like a new one, and its owner gets a mail', async () => {
    const again = await alice.send('POST', '/api/users', {
      email: alice.email,
      password: PASSWORD,
    });
    expect([again.status, again.body]).toEqual([202, { status: 'accepted' }]);
    await waitFor('the mail', async () =>
      (await mailsTo(accounts.outbox, alice.email)).some((mail) =>
        mail.includes('You already have an account'),
      ),
    );
  });

  test('a reset sets the password once and ends all sessions', async () => {
    const dave = await accounts.customer('dave');
    await dave.send('POST', '/api/password/reset', { email: dave.email });
    const token = await tokenFor(accounts.outbox, dave.email, 'Reset your password');
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

  test('attempts are limited, and the refusal says when to retry', async () => {
    const eve = accounts.stranger('eve');
    const statuses: number[] = [];
    for (let i = 0; i < 11; i += 1) statuses.push((await eve.signIn('a wrong password')).status);
    expect(statuses.slice(0, 10).every((status) => status === 401)).toBe(true);
    expect(statuses[10]).toBe(429);
  });
});

describe('subscriptions', () => {
  test('tier change and cancellation take effect within a second', async () => {
    const frank = await accounts.customer('frank');
    const refused = await waitFor('an answer of the database', async () => {
      const answer = await frank.send('POST', '/api/keys', { name: 'x' });
      return answer.status === 503 ? String(answer.body.code) : answer;
    });
    expect(refused.body.code).toBe('subscription_required');
    await frank.subscribe('basic');
    const { key } = await makeKey(frank);
    const ticket = () => frank.send('POST', '/api/stream/tickets', undefined, { 'x-api-key': key });
    expect((await ticket()).body).toMatchObject({ code: 'tier_too_low', needs: 'pro' });
    const asked = await frank.send('PATCH', '/api/subscription', { tier: 'pro' });
    expect([asked.status, asked.body.code]).toEqual([402, 'payment_required']);
    expect((await frank.send('GET', '/api/subscription')).body.tier).toBe('basic');
    const begun = await frank.subscribe('pro');
    expect(begun.body).toMatchObject({ tier: 'pro', currency: 'USD', period_days: 30 });
    // Bought a moment ago, Basic is credited in full, or nearly so.
    expect(begun.body.amount_cents + begun.body.credit_cents).toBe(9_900);
    expect(begun.body.credit_cents).toBeGreaterThan(1_890);
    const issued = await waitFor('the tier', async () => {
      const answer = await ticket();
      return answer.status === 201 && answer;
    });
    expect(issued.body.ticket).toMatch(/^pit_/);
    const lower = await frank.send('PATCH', '/api/subscription', { tier: 'basic' });
    expect(lower.body).toMatchObject({ tier: 'pro', next_tier: 'basic' });
    const same = await frank.send('PATCH', '/api/subscription', { tier: 'pro' });
    expect(same.body).toMatchObject({ tier: 'pro', next_tier: null });
    await frank.send('POST', '/api/subscription/cancel', { at: 'now' });
    await waitFor('the subscription to end', async () => (await latest(key)) === 403);
  });

  test('an unsigned payment event has no effect', async () => {
    const event = { type: 'payment.succeeded' };
    const answer = await alice.send('POST', '/api/billing/events/test', event);
    expect([answer.status, answer.body.code]).toEqual([400, 'billing_event_invalid']);
  });
});

test('usage counts calls by day, key and endpoint', async () => {
  const gina = await accounts.customer('gina', 'pro');
  const { key, record } = await makeKey(gina);
  for (let i = 0; i < 3; i += 1) await latest(key);
  const usage = await waitFor('the breakdown', async () => {
    const { body } = await gina.send('GET', '/api/usage?days=2');
    return body.by_key[0]?.calls === 3 && body;
  });
  expect(usage.today).toMatchObject({ used: 3, limit: 10_000, remaining: 9_997 });
  expect(usage.by_key[0]).toMatchObject({ key_id: record.id, calls: 3 });
  expect(usage.by_endpoint).toEqual([{ endpoint: 'GET /api/pills/latest', calls: 3 }]);
  expect(usage.by_day).toHaveLength(2);
});

test('a support ticket is mailed with the priority of the tier', async () => {
  const sent = await alice.send('POST', '/api/support', { subject: 'Late', message: 'Why?' });
  expect(sent.body).toMatchObject({ priority: 2, channel: 'priority' });
  await waitFor('the mail', async () =>
    (await mailsTo(accounts.outbox, 'support@pillole.invalid')).some((mail) =>
      mail.includes('[P2] pro: Late'),
    ),
  );
  const forged = { subject: 'Late\r\nBcc: x@y.z', message: 'Why?' };
  const refused = await alice.send('POST', '/api/support', forged);
  expect(refused.body.errors).toEqual([
    {
      pointer: '#/subject',
      code: 'malformed',
      detail: 'Send one line that is not blank, without control characters.',
    },
  ]);
});

test('closing needs the password and ends the keys', async () => {
  const hugo = await accounts.customer('hugo', 'basic');
  const { key } = await makeKey(hugo);
  expect((await hugo.send('DELETE', '/api/account', { password: 'wrong' })).status).toBe(401);
  expect((await hugo.send('DELETE', '/api/account', { password: PASSWORD })).status).toBe(204);
  await waitFor('the keys to end', async () => (await latest(key)) === 401);
  expect((await hugo.send('GET', '/api/session')).status).toBe(401);
});

describe('another account’s object does not exist', () => {
  /** For each route with a parameter, alice's object. New routes must be added here. */
  const CASES: Readonly<
    Record<
      string,
      {
        body?: object;
        own: () => Promise<string>;
        /** The account that tries, where bob's tier is too low. */
        stranger?: () => Promise<Customer>;
      }
    >
  > = {
    'GET /api/manager/streams/:name': { own: dedicatedOfInes, stranger: jack },
    'POST /api/manager/streams/:name/rotate': { own: dedicatedOfInes, stranger: jack, body: {} },
    'DELETE /api/manager/streams/:name': { own: dedicatedOfInes, stranger: jack },
    'GET /api/manager/authentication/schemes/:id': { own: schemeOfInes, stranger: jack },
    'PATCH /api/manager/authentication/schemes/:id': {
      own: schemeOfInes,
      stranger: jack,
      body: { name: 'taken' },
    },
    'DELETE /api/manager/authentication/schemes/:id': { own: schemeOfInes, stranger: jack },
    'POST /api/manager/authentication/schemes/:id/trial': { own: schemeOfInes, stranger: jack },
    'PATCH /api/manager/authentication/keys/:id': {
      own: keyOfInes,
      stranger: jack,
      body: { secret: 'accepted' },
    },
    'GET /api/destinations/:id': { own: destinationOfInes, stranger: jack },
    'GET /api/destinations/:id/attempts': { own: destinationOfInes, stranger: jack },
    'PATCH /api/destinations/s3/:id': {
      own: destinationOfInes,
      stranger: jack,
      body: { name: 'taken' },
    },
    'POST /api/destinations/:id/pause': { own: destinationOfInes, stranger: jack },
    'POST /api/destinations/:id/resume': { own: destinationOfInes, stranger: jack },
    'POST /api/destinations/:id/test': { own: destinationOfInes, stranger: jack },
    'DELETE /api/destinations/:id': { own: destinationOfInes, stranger: jack },
    'GET /api/manager/desks/:name': { own: deskOfInes, stranger: jack },
    'GET /api/manager/desks/:name/usage': { own: deskOfInes, stranger: jack },
    'DELETE /api/manager/desks/:name': { own: deskOfInes, stranger: jack },
    'PATCH /api/manager/members/:id': {
      own: memberOfInes,
      stranger: jack,
      body: { role: 'read_only' },
    },
    'DELETE /api/manager/members/:id': { own: memberOfInes, stranger: jack },
    'POST /api/manager/invitations/:id/resend': { own: invitationOfInes, stranger: jack },
    'DELETE /api/manager/invitations/:id': { own: invitationOfInes, stranger: jack },
    'GET /api/exports/:id': { own: exportOfAlice },
    'DELETE /api/exports/:id': { own: exportOfAlice },
    'GET /api/webhooks/:id': { own: webhookOfAlice },
    'PATCH /api/webhooks/:id': { own: webhookOfAlice, body: { description: 'taken' } },
    'DELETE /api/webhooks/:id': { own: webhookOfAlice },
    'POST /api/webhooks/:id/test': { own: webhookOfAlice },
    'POST /api/webhooks/:id/rotate-secret': { own: webhookOfAlice, body: {} },
    'GET /api/webhooks/:id/deliveries': { own: webhookOfAlice },
    'GET /api/webhooks/:id/attempts': { own: webhookOfAlice },
    'GET /api/webhooks/:id/deliveries/:message_id': { own: webhookOfAlice },
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
    'GET /api/webhooks/:id/health': { own: webhookOfAlice },
    'GET /api/support/:id': { own: ticketOfAlice },
    'PATCH /api/support/:id': { own: ticketOfAlice, body: { state: 'closed' } },
    'POST /api/support/:id/messages': { own: ticketOfAlice, body: { message: 'taken' } },
    'DELETE /api/stream/sessions/:id': { own: socketOfAlice },
    'DELETE /api/sessions/:id': { own: signInOfAlice },
    'POST /api/billing/test/checkouts/:id': {
      async own() {
        const carl = await accounts.customer('carl');
        const { body } = await waitFor('a checkout', async () => {
          const begun = await carl.send('POST', '/api/subscription/checkout', { tier: 'pro' });
          return begun.body.checkout_id !== undefined && begun;
        });
        return body.checkout_id;
      },
      body: { outcome: 'paid' },
    },
  };
  /** Routes whose parameter is not an object of an account. */
  const PUBLIC = [
    // Creates the own desk of this name.
    'PUT /api/manager/desks/:name',
    'GET /api/exports/:id/file',
    'GET /problems/:name',
    'POST /api/billing/events/:provider',
  ];

  async function exportOfAlice(): Promise<string> {
    const { body } = await alice.send('GET', '/api/account');
    const id = `exp_${randomBytes(6).toString('hex')}`;
    await pool.query(
      `INSERT INTO exports
         (id, account_id, created_by, request, state, epoch, position, rows_estimated)
       VALUES ($1, $2, 'test', '{"format":"parquet","asked":{}}', 'canceled', 'k', 'k:', 0)`,
      [id, body.id],
    );
    return id;
  }

  /** A socket registered by a stream process. */
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

  async function ticketOfAlice(): Promise<string> {
    const question = { subject: 'A bill', message: 'Why?' };
    return (await alice.send('POST', '/api/support', question)).body.ticket;
  }

  const institutions = new Map<string, Promise<Customer>>();
  /** Signed in once: sign-ins of one network are limited. */
  function institutional(name: string): Promise<Customer> {
    const opening = institutions.get(name) ?? openInstitutional(name);
    institutions.set(name, opening);
    return opening;
  }
  async function openInstitutional(name: string): Promise<Customer> {
    const customer = await accounts.customer(name, 'institutional');
    // A change of the tier takes effect within a second, not at once.
    await waitFor('the tier to take effect', async () => {
      return (await customer.send('GET', '/api/manager/streams')).status === 200;
    });
    return customer;
  }
  async function dedicatedOfInes(): Promise<string> {
    const ines = await institutional('ines');
    return (await ines.send('POST', '/api/manager/streams', { label: 'desk' })).body.name;
  }
  async function schemeOfInes(): Promise<string> {
    const ines = await institutional('ines');
    const scheme = { name: `desk ${randomBytes(4).toString('hex')}`, algorithm: 'hmac-sha256' };
    const to = '/api/manager/authentication/signature-schemes';
    return (await ines.send('POST', to, scheme)).body.scheme.id;
  }
  async function deskOfInes(): Promise<string> {
    const name = `desk_${randomBytes(6).toString('hex')}`.replace('_', '-');
    await (await institutional('ines')).send('PUT', `/api/manager/desks/${name}`, {});
    return name;
  }
  async function memberOfInes(): Promise<string> {
    return (await (await institutional('ines')).send('GET', '/api/session')).body.user.id;
  }
  async function invitationOfInes(): Promise<string> {
    const ines = await institutional('ines');
    const email = `${randomBytes(6).toString('hex')}@example.com`;
    const invited = { email, role: 'developer' };
    return (await ines.send('POST', '/api/manager/invitations', invited)).body.id;
  }
  async function keyOfInes(): Promise<string> {
    return (await makeKey(await institutional('ines'))).record.id;
  }
  let destination: Promise<string> | undefined;
  /** One destination for all cases: no case may change it, and an account has ten. */
  function destinationOfInes(): Promise<string> {
    const { settings, secrets } = s3.example;
    destination ??= institutional('ines')
      .then((ines) =>
        ines.send('POST', '/api/destinations/s3', { name: 'lake', settings, secrets }),
      )
      .then(({ body }) => body.id);
    return destination;
  }
  function jack(): Promise<Customer> {
    return institutional('jack');
  }

  let webhook: Promise<string> | undefined;
  /** One endpoint for all cases: no case may change it, and Pro has five. */
  function webhookOfAlice(): Promise<string> {
    webhook ??= alice
      .send('POST', '/api/webhooks', {
        url: 'http://127.0.0.1:9/hook',
        event_types: ['pill.published'],
      })
      .then(({ body }) => body.endpoint.id);
    return webhook;
  }

  async function signInOfAlice(): Promise<string> {
    return (await alice.send('GET', '/api/sessions')).body.data[0].id;
  }

  async function keyOfAlice(): Promise<string> {
    return (await makeKey(alice)).record.id;
  }

  test('every route with a parameter has a case', async () => {
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
    /** A second parameter names something inside the object. */
    const at = (object: string) => pattern.replace(/:\w+/, object).replace(/:\w+/, 'msg_inside');
    const theirs = await asked.send(method, at(id), body);
    const none = await asked.send(method, at(id.replace(/_.*/, '_aaaaaaaaaaaa')), body);
    expect([theirs.status, theirs.body.code]).toEqual([404, 'object_not_found']);
    expect({ ...theirs.body, request_id: '' }).toEqual({ ...none.body, request_id: '' });
  });
});

test('the output of the process contains no key, password or token', async () => {
  const { key } = await makeKey(alice);
  await latest(key);
  await latest('pil_live_not_one_at_all');
  const { cookie, 'x-csrf-token': csrf } = alice.credentials();
  const { ticket } = (await alice.send('POST', '/api/stream/tickets')).body;
  const mailed = await tokenFor(accounts.outbox, alice.email, 'Verify');
  const output = accounts.api.output();
  expect(output).not.toMatch(/pil_live_[0-9A-Za-z]{32}/);
  for (const secret of [key, PASSWORD, cookie!.split('=')[1]!, csrf!, ticket, mailed]) {
    expect(secret.length).toBeGreaterThan(15);
    expect(output).not.toContain(secret);
  }
});
