import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROLES, type Role } from '../../../domain/access/roles.ts';
import { MEMBER_LIMITS } from '../../../domain/members/member-rows.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import { type Answer, type Customer, mailsTo, PASSWORD, tokenFor } from '../testing/customer.ts';

const INVITATION = 'You are invited';

let accounts: AccountApi;
let elsewhere: string;
let db: Database;
/** The owner of an Institutional account. */
let ada: Customer;
let accountId: string;

beforeAll(async () => {
  accounts = await openAccountApi();
  elsewhere = await accounts.start({});
  db = openTestDatabase(accounts.namespace);
  ada = await accounts.customer('ada', 'institutional');
  accountId = (await ada.send('GET', '/api/account')).body.id;
});

afterAll(async () => {
  await accounts?.close();
  await db?.destroy();
});

/** Sends a request until neither a limit of rates nor a busy database stands in the way. */
function settled(by: Customer, ...request: Parameters<Customer['send']>): Promise<Answer> {
  return waitFor(`${request[0]} ${request[1]}`, async () => {
    const answer = await by.send(...request);
    const { code } = answer.body ?? {};
    return (answer.status !== 503 && code !== 'rate_limited' && answer) || String(code);
  });
}

async function invite(email: string, role: Role, by = ada): Promise<string> {
  // Mails to one address are limited.
  await db.deleteFrom('attempts').execute();
  const made = await settled(by, 'POST', '/api/manager/invitations', { email, role });
  expect([made.status, made.body.role]).toEqual([201, role]);
  return made.body.id;
}

/** A new user who has accepted an invitation and signed in. */
async function member(name: string, role: Role, at?: string): Promise<Customer> {
  const customer = accounts.stranger(name, at);
  await invite(customer.email, role);
  const token = await tokenFor(accounts.outbox, customer.email, INVITATION);
  const accepted = await settled(customer, 'POST', '/api/invitations/accept', {
    token,
    password: PASSWORD,
  });
  expect(accepted.body).toEqual({ account: accountId, email: customer.email, role });
  expect((await customer.signIn()).status).toBe(200);
  return customer;
}

async function idOf(email: string): Promise<string> {
  const query = db.selectFrom('users').select('id').where('email', '=', email);
  return (await query.executeTakeFirstOrThrow()).id;
}

async function pathOf({ email }: Customer): Promise<string> {
  return `/api/manager/members/${await idOf(email)}`;
}

async function setTier(tier: 'pro' | 'institutional'): Promise<void> {
  await db.updateTable('subscriptions').set({ tier }).where('account_id', '=', accountId).execute();
  await waitFor(`the tier ${tier}`, async () => {
    return (await settled(ada, 'GET', '/api/account')).body.tier === tier;
  });
}

describe('an invitation', () => {
  test('makes a new user a member once, whose entries in the audit log name him', async () => {
    const bea = accounts.stranger('bea');
    const id = await invite(bea.email.toUpperCase(), 'developer');
    const listed = await settled(ada, 'GET', '/api/manager/members');
    expect(listed.body.invitations).toMatchObject([
      { id, email: bea.email, role: 'developer', mails: 1 },
    ]);
    const token = await tokenFor(accounts.outbox, bea.email, INVITATION);
    expect(JSON.stringify(listed.body)).not.toContain(token);
    const body = { token, password: PASSWORD };
    const accept = (at?: string) =>
      settled(accounts.stranger('anyone', at), 'POST', '/api/invitations/accept', body);
    const weak = { token, password: 'password1' };
    const refused = await settled(bea, 'POST', '/api/invitations/accept', weak);
    expect([refused.status, refused.body.errors[0].pointer]).toEqual([400, '#/password']);
    const both = await Promise.all([accept(), accept(elsewhere)]);
    expect(both.map(({ status }) => status).sort()).toEqual([201, 400]);
    expect((await accept()).body.code).toBe('token_invalid');
    await bea.signIn();
    const { body: session } = await settled(bea, 'GET', '/api/session');
    expect(session).toMatchObject({ role: 'developer', account: accountId });
    const made = await settled(bea, 'POST', '/api/keys', { name: 'of bea' });
    const { body: audit } = await settled(ada, 'GET', '/api/account/audit');
    const actor = `user:${await idOf(bea.email)}`;
    expect(audit.data).toContainEqual(
      expect.objectContaining({ action: 'key.created', target: made.body.record.id, actor }),
    );
    expect(audit.data).toContainEqual(expect.objectContaining({ action: 'member.joined', actor }));
    await waitFor('the mail to the owner', async () =>
      (await mailsTo(accounts.outbox, ada.email)).some((mail) =>
        mail.includes(`Subject: A new member acts for your account: ${bea.email}`),
      ),
    );
  });

  test('moves an existing user, after the proof of the address, and signs him out', async () => {
    const cid = await accounts.customer('cid');
    const own = (await settled(cid, 'GET', '/api/session')).body.account;
    await invite(cid.email, 'billing');
    const token = await tokenFor(accounts.outbox, cid.email, INVITATION);
    const known = { token, password: 'another horse battery' };
    const asNew = await settled(cid, 'POST', '/api/invitations/accept', known);
    expect([asNew.status, asNew.body.code]).toEqual([409, 'state_conflict']);
    const other = await accounts.customer('other');
    const stolen = await settled(other, 'POST', '/api/invitations/join', { token });
    expect([stolen.status, stolen.body.code]).toEqual([400, 'token_invalid']);
    const joined = await settled(cid, 'POST', '/api/invitations/join', { token });
    expect(joined.body).toEqual({ account: accountId, email: cid.email, role: 'billing' });
    expect((await settled(cid, 'GET', '/api/session')).status).toBe(401);
    await cid.signIn();
    expect((await settled(cid, 'GET', '/api/subscription')).body.tier).toBe('institutional');
    expect((await settled(cid, 'GET', '/api/keys')).body.code).toBe('permission_missing');
    const left = await db
      .selectFrom('accounts')
      .select('status')
      .where('id', '=', own)
      .executeTakeFirstOrThrow();
    expect(left.status).toBe('closed');
    expect((await settled(cid, 'POST', '/api/invitations/join', { token })).body.code).toBe(
      'token_invalid',
    );
  });

  test('does not take a user away from what he pays for', async () => {
    const dot = await accounts.customer('dot', 'basic');
    await invite(dot.email, 'admin');
    const token = await tokenFor(accounts.outbox, dot.email, INVITATION);
    const bound = await settled(dot, 'POST', '/api/invitations/join', { token });
    expect([bound.status, bound.body.detail]).toEqual([
      409,
      expect.stringContaining('subscription'),
    ]);
    expect((await settled(dot, 'GET', '/api/account')).body.tier).toBe('basic');
  });

  test('ends when it is revoked or has expired; a new mail voids the former token', async () => {
    const eli = accounts.stranger('eli');
    const id = await invite(eli.email, 'read_only');
    const accept = (token: string) =>
      settled(eli, 'POST', '/api/invitations/accept', { token, password: PASSWORD });
    const first = await tokenFor(accounts.outbox, eli.email, INVITATION);
    const resend = () => settled(ada, 'POST', `/api/manager/invitations/${id}/resend`);
    expect((await resend()).status).toBe(204);
    const { second } = await waitFor('the second mail', async () => {
      const token = await tokenFor(accounts.outbox, eli.email, INVITATION);
      return token !== first && { second: token };
    });
    expect((await accept(first)).body.code).toBe('token_invalid');
    const row = db.updateTable('invitations').where('id', '=', id);
    await row.set({ expires_at: new Date(Date.now() - 1_000) }).execute();
    expect((await accept(second)).body.code).toBe('token_invalid');
    await row.set({ expires_at: new Date(Date.now() + 60_000) }).execute();
    await row.set({ mails: MEMBER_LIMITS.mailsOfInvitationMax }).execute();
    await db.deleteFrom('attempts').execute();
    expect((await resend()).body.code).toBe('state_conflict');
    expect((await settled(ada, 'DELETE', `/api/manager/invitations/${id}`)).status).toBe(204);
    expect((await accept(second)).body.code).toBe('token_invalid');
    expect((await settled(ada, 'DELETE', `/api/manager/invitations/${id}`)).status).toBe(404);
  });

  test('is made once for an address, and not beyond the bound of members', async () => {
    const again = await settled(ada, 'POST', '/api/manager/invitations', {
      email: ada.email,
      role: 'admin',
    });
    expect([again.status, again.body.code]).toEqual([409, 'state_conflict']);
    const rows = Array.from({ length: MEMBER_LIMITS.perAccountMax }, (_, index) => ({
      id: `inv_full${String(index).padStart(8, '0')}`,
      account_id: accountId,
      email: `full-${index}@example.com`,
      role: 'developer' as const,
      hash: Buffer.from(`full ${index}`),
      created_by: 'system',
      expires_at: new Date(Date.now() + 3_600_000),
    }));
    await db.insertInto('invitations').values(rows).execute();
    const full = await settled(ada, 'POST', '/api/manager/invitations', {
      email: 'one-more@example.com',
      role: 'developer',
    });
    expect([full.status, full.body]).toEqual([
      409,
      expect.objectContaining({ code: 'member_limit', limit: MEMBER_LIMITS.perAccountMax }),
    ]);
    await db.deleteFrom('invitations').where('email', 'like', 'full-%').execute();
  });
});

describe('a role', () => {
  test('is raised by nobody for himself; only owners make, change and remove owners', async () => {
    const dev = await member('fay', 'developer');
    const own = await settled(dev, 'PATCH', await pathOf(dev), { role: 'owner' });
    expect([own.status, own.body]).toMatchObject([
      403,
      { code: 'permission_missing', role: 'developer', permission: 'members:change' },
    ]);
    const admin = await member('gil', 'admin');
    for (const [method, to, body] of [
      ['PATCH', await pathOf(admin), { role: 'owner' }],
      ['PATCH', await pathOf(dev), { role: 'owner' }],
      ['PATCH', await pathOf(ada), { role: 'read_only' }],
      ['DELETE', await pathOf(ada), undefined],
      ['POST', '/api/manager/invitations', { email: 'x@example.com', role: 'owner' }],
    ] as const) {
      const { status, body: answer } = await settled(admin, method, to, body);
      expect([to, status, answer.code, answer.roles]).toEqual([
        to,
        403,
        'permission_missing',
        ['owner'],
      ]);
    }
    expect((await settled(admin, 'PATCH', await pathOf(dev), { role: 'billing' })).status).toBe(
      204,
    );
    // The sessions of the member have ended; the next one has the new role.
    expect((await settled(dev, 'GET', '/api/session')).status).toBe(401);
    await dev.signIn();
    expect((await settled(dev, 'GET', '/api/session')).body.role).toBe('billing');
  });

  test('of the last owner stays, and he stays a member', async () => {
    const to = await pathOf(ada);
    const demoted = await settled(ada, 'PATCH', to, { role: 'admin' });
    const removed = await settled(ada, 'DELETE', to);
    for (const { status, body } of [demoted, removed]) {
      expect([status, body.code]).toEqual([409, 'state_conflict']);
    }
  });
});

test('a removed member is out in every process at once, with an empty account of his own', async () => {
  const hal = await member('hal', 'developer');
  const there = accounts.stranger('hal', elsewhere);
  expect((await there.signIn()).status).toBe(200);
  const { key, record } = (await settled(hal, 'POST', '/api/keys', { name: 'of hal' })).body;
  expect((await settled(ada, 'DELETE', await pathOf(hal))).status).toBe(204);
  for (const session of [hal, there]) {
    expect((await settled(session, 'GET', '/api/session')).status).toBe(401);
  }
  await hal.signIn();
  const { body } = await settled(hal, 'GET', '/api/session');
  expect(body.role).toBe('owner');
  expect(body.account).not.toBe(accountId);
  expect((await settled(hal, 'GET', '/api/keys')).body.data).toEqual([]);
  expect((await settled(hal, 'DELETE', `/api/keys/${record.id}`)).status).toBe(404);
  // The key belongs to the account.
  const read = await settled(accounts.stranger('no'), 'GET', '/api/account', undefined, {
    'x-api-key': key,
  });
  expect(read.body.id).toBe(accountId);
});

test('after a downgrade only owners have access, and nothing is deleted', async () => {
  const ivy = await member('ivy', 'admin');
  const jon = accounts.stranger('jon');
  await invite(jon.email, 'developer');
  const token = await tokenFor(accounts.outbox, jon.email, INVITATION);
  await setTier('pro');
  const inactive = await settled(ivy, 'GET', '/api/keys');
  expect([inactive.status, inactive.body]).toMatchObject([
    403,
    { code: 'membership_inactive', role: 'admin' },
  ]);
  // The own sign-in is not access to the account.
  expect((await settled(ivy, 'GET', '/api/session')).status).toBe(200);
  const joining = { token, password: PASSWORD };
  const joined = await settled(jon, 'POST', '/api/invitations/accept', joining);
  expect(joined.body.code).toBe('membership_inactive');
  const inviting = { email: 'late@example.com', role: 'admin' };
  const invited = await settled(ada, 'POST', '/api/manager/invitations', inviting);
  expect(invited.body.code).toBe('tier_too_low');
  const { body } = await settled(ada, 'GET', '/api/manager/members');
  expect(body.data.map(({ email }: { email: string }) => email)).toContain(ivy.email);
  expect((await settled(ada, 'GET', '/api/keys')).status).toBe(200);
  await setTier('institutional');
  expect((await settled(ivy, 'GET', '/api/keys')).status).toBe(200);
  const accepted = await settled(jon, 'POST', '/api/invitations/accept', joining);
  expect(accepted.status).toBe(201);
});

describe('what each role may do', () => {
  /** Roles by what they may call, independent of the table in the code. */
  const CALLS: readonly (readonly [roles: readonly Role[], routes: readonly string[]])[] = [
    [
      ['owner', 'admin', 'developer', 'billing', 'read_only'],
      ['GET /api/account', 'GET /api/manager/members', 'GET /api/usage'],
    ],
    [
      ['owner', 'admin', 'developer', 'read_only'],
      [
        ...['GET /api/analytics/bars', 'GET /api/analytics/cadence'],
        ...['GET /api/analytics/confidence', 'GET /api/analytics/correlation'],
        ...['GET /api/analytics/movers', 'GET /api/analytics/outliers'],
        ...['GET /api/analytics/states', 'GET /api/analytics/summary'],
        ...['GET /api/exports', 'GET /api/exports/{id}', 'GET /api/keys', 'GET /api/keys/{id}'],
        ...['GET /api/manager/authentication', 'GET /api/manager/authentication/schemes/{id}'],
        ...['GET /api/manager/desks', 'GET /api/manager/desks/{name}'],
        ...['GET /api/manager/desks/{name}/usage'],
        ...['GET /api/manager/streams', 'GET /api/manager/streams/{name}'],
        ...['GET /api/market/verify', 'GET /api/pills', 'GET /api/pills/latest'],
        ...['GET /api/destinations', 'GET /api/destinations/{id}'],
        ...['GET /api/destinations/types', 'GET /api/destinations/{id}/attempts'],
        ...['GET /api/stream/sessions', 'GET /api/symbols', 'GET /api/webhooks'],
        ...['GET /api/webhooks/{id}', 'GET /api/webhooks/{id}/attempts'],
        ...['GET /api/webhooks/{id}/deliveries', 'GET /api/webhooks/{id}/health'],
        ...['GET /api/webhooks/{id}/deliveries/{message_id}', 'POST /api/stream/tickets'],
      ],
    ],
    [
      ['owner', 'admin', 'developer', 'billing'],
      [
        ...['GET /api/support', 'GET /api/support/{id}', 'PATCH /api/support/{id}'],
        ...['POST /api/support', 'POST /api/support/{id}/messages'],
      ],
    ],
    [
      ['owner', 'admin', 'developer'],
      [
        ...['DELETE /api/exports/{id}', 'DELETE /api/keys/{id}'],
        ...['DELETE /api/manager/streams/{name}', 'DELETE /api/stream/sessions/{id}'],
        ...['DELETE /api/destinations/{id}', 'PATCH /api/destinations/s3/{id}'],
        ...['POST /api/destinations/s3', 'POST /api/destinations/{id}/pause'],
        ...['POST /api/destinations/{id}/resume', 'POST /api/destinations/{id}/test'],
        ...['DELETE /api/webhooks/{id}', 'PATCH /api/keys/{id}', 'PATCH /api/webhooks/{id}'],
        ...['POST /api/exports', 'POST /api/keys', 'POST /api/keys/{id}/rotate'],
        ...['POST /api/manager/streams', 'POST /api/manager/streams/{name}/rotate'],
        ...['POST /api/webhooks', 'POST /api/webhooks/{id}/deliveries/{message_id}/resend'],
        ...['POST /api/webhooks/{id}/recover', 'POST /api/webhooks/{id}/replay'],
        ...['POST /api/webhooks/{id}/rotate-secret', 'POST /api/webhooks/{id}/test'],
      ],
    ],
    [
      ['owner', 'admin'],
      [
        ...['DELETE /api/manager/authentication/schemes/{id}', 'GET /api/account/audit'],
        ...['DELETE /api/manager/invitations/{id}', 'DELETE /api/manager/members/{id}'],
        ...['GET /api/account/export', 'PATCH /api/account', 'PATCH /api/manager/authentication'],
        ...['PATCH /api/manager/authentication/keys/{id}', 'PATCH /api/manager/members/{id}'],
        ...['PATCH /api/manager/authentication/schemes/{id}', 'POST /api/manager/invitations'],
        ...['POST /api/manager/authentication/schemes/{id}/trial'],
        ...['POST /api/manager/authentication/signature-schemes'],
        ...['POST /api/manager/authentication/token-schemes'],
        ...['POST /api/manager/invitations/{id}/resend', 'PUT /api/manager/desks/{name}'],
        ...['DELETE /api/manager/desks/{name}'],
      ],
    ],
    [
      ['owner', 'admin', 'billing'],
      ['GET /api/subscription', 'GET /api/subscription/invoices'],
    ],
    [
      ['owner', 'billing'],
      [
        ...['PATCH /api/subscription', 'POST /api/billing/test/checkouts/{id}'],
        ...['POST /api/subscription/cancel', 'POST /api/subscription/checkout'],
        ...['POST /api/subscription/resume'],
      ],
    ],
    [['owner'], ['DELETE /api/account']],
  ];
  /** The own sign-ins of a person, which no role is needed for. */
  const OWN = [
    ...['DELETE /api/second-factor', 'DELETE /api/session', 'DELETE /api/sessions'],
    ...['DELETE /api/sessions/{id}', 'GET /api/second-factor', 'GET /api/session'],
    ...['GET /api/sessions', 'POST /api/invitations/join', 'POST /api/password'],
    ...['POST /api/second-factor', 'POST /api/second-factor/confirm'],
    ...['POST /api/second-factor/recovery-codes', 'POST /api/session/second-factor'],
  ];

  test('every route that accepts sessions has its place in the table', async () => {
    const { body } = await settled(ada, 'GET', '/openapi.json');
    const found = Object.entries<Record<string, { 'x-roles'?: readonly Role[] }>>(
      body.paths,
    ).flatMap(([to, methods]) =>
      Object.entries(methods).flatMap(([method, operation]) =>
        operation['x-roles'] === undefined
          ? []
          : [[`${method.toUpperCase()} ${to}`, operation['x-roles']] as const],
      ),
    );
    const expected = [
      ...CALLS.flatMap(([roles, routes]) => routes.map((route) => [route, roles] as const)),
      ...OWN.map((route) => [route, ROLES] as const),
    ];
    const sorted = (rows: readonly (readonly [string, readonly Role[]])[]) =>
      Object.fromEntries(rows.map(([route, roles]) => [route, [...roles].sort()]));
    expect(sorted(found)).toEqual(sorted(expected));
  });

  test.each(ROLES)('%s', async (role) => {
    const name = `of-${role.replace('_', '-')}`;
    const customer = await member(name, role === 'owner' ? 'admin' : role);
    await db.updateTable('users').set({ role }).where('email', '=', customer.email).execute();
    const csrf = customer.credentials()['x-csrf-token']!;
    const wrong: string[] = [];
    for (const [roles, routes] of CALLS) {
      for (const route of routes) {
        const [method, to] = route.split(' ') as [string, string];
        const prefix = /\/(\w+)\/\{(?:id|name)\}/.exec(to)?.[1] ?? '';
        const path = to
          .replace('/desks/{name}', '/desks/tokyo')
          .replace(/\{(?:id|name)\}/, `${PREFIXES[prefix] ?? ''}_aaaaaaaaaaaa`)
          .replace('{message_id}', 'msg_none');
        // A body that no route accepts, so that what a role permits has no effect.
        const body = method === 'GET' || BODILESS.includes(route) ? undefined : { nothing: 1 };
        const answer = await settled(customer, method, path, body, { 'x-csrf-token': csrf });
        const isRefused = answer.body?.code === 'permission_missing';
        if (isRefused === roles.includes(role)) wrong.push(`${route}: ${answer.body?.code}`);
        if (isRefused) expect([...answer.body.roles].sort()).toEqual([...roles].sort());
      }
    }
    expect(wrong).toEqual([]);
  });
});

/** Prefixes of ids, by the part of the path before. */
const PREFIXES: Readonly<Record<string, string>> = {
  exports: 'exp',
  keys: 'key',
  schemes: 'aut',
  streams: 'ded',
  webhooks: 'whk',
  destinations: 'dst',
  support: 'tkt',
  sessions: 's',
  invitations: 'inv',
  members: 'usr',
  checkouts: 'chk',
};
const BODILESS: readonly string[] = [
  'DELETE /api/exports/{id}',
  'DELETE /api/keys/{id}',
  'POST /api/stream/tickets',
  'POST /api/subscription/resume',
];
