import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../../domain/access/scopes.ts';
import type { Customer } from '../testing/customer.ts';
import { openWebhookApi, type WebhookApi } from '../webhooks/testing/webhook-api.ts';

/** Who may call each route: anyone, sessions only, every key, or keys with a scope. */
const ROUTES = {
  anyone: [
    'GET /api/authentication/check',
    'GET /api/exports/{id}/file',
    'GET /api/plans',
    'GET /api/status',
    'GET /api/status/days',
    'GET /console/settings',
    'GET /health',
    'GET /problems',
    'GET /problems/{name}',
    'GET /ready',
    'POST /api/authentication/check',
    'POST /api/billing/events/{provider}',
    'POST /api/invitations/accept',
    'POST /api/password/reset',
    'POST /api/password/reset/confirm',
    'POST /api/session',
    'POST /api/users',
    'POST /api/users/verify',
    'POST /api/users/verify/resend',
  ],
  session: [
    'DELETE /api/account',
    'DELETE /api/destinations/{id}',
    'DELETE /api/keys/{id}',
    'DELETE /api/manager/authentication/schemes/{id}',
    'DELETE /api/manager/desks/{name}',
    'DELETE /api/manager/invitations/{id}',
    'DELETE /api/manager/members/{id}',
    'DELETE /api/manager/streams/{name}',
    'DELETE /api/second-factor',
    'DELETE /api/session',
    'DELETE /api/sessions',
    'DELETE /api/sessions/{id}',
    'GET /api/account/audit',
    'GET /api/account/export',
    'GET /api/keys',
    'GET /api/keys/{id}',
    'GET /api/manager/authentication',
    'GET /api/manager/authentication/schemes/{id}',
    'GET /api/manager/desks',
    'GET /api/manager/desks/{name}',
    'GET /api/manager/desks/{name}/usage',
    'GET /api/manager/members',
    'GET /api/manager/streams',
    'GET /api/manager/streams/{name}',
    'GET /api/second-factor',
    'GET /api/session',
    'GET /api/sessions',
    'GET /api/subscription',
    'GET /api/subscription/invoices',
    'PATCH /api/account',
    'PATCH /api/destinations/s3/{id}',
    'PATCH /api/keys/{id}',
    'PATCH /api/manager/authentication',
    'PATCH /api/manager/authentication/keys/{id}',
    'PATCH /api/manager/authentication/schemes/{id}',
    'PATCH /api/manager/members/{id}',
    'PATCH /api/subscription',
    'POST /api/billing/test/checkouts/{id}',
    'POST /api/destinations/s3',
    'POST /api/destinations/{id}/pause',
    'POST /api/destinations/{id}/resume',
    'POST /api/destinations/{id}/test',
    'POST /api/invitations/join',
    'POST /api/keys',
    'POST /api/keys/{id}/rotate',
    'POST /api/manager/authentication/schemes/{id}/trial',
    'POST /api/manager/authentication/signature-schemes',
    'POST /api/manager/authentication/token-schemes',
    'POST /api/manager/invitations',
    'POST /api/manager/invitations/{id}/resend',
    'POST /api/manager/streams',
    'POST /api/manager/streams/{name}/rotate',
    'POST /api/password',
    'POST /api/second-factor',
    'POST /api/second-factor/confirm',
    'POST /api/second-factor/recovery-codes',
    'POST /api/session/second-factor',
    'POST /api/subscription/cancel',
    'POST /api/subscription/checkout',
    'POST /api/subscription/resume',
    'POST /api/webhooks/{id}/rotate-secret',
    'PUT /api/manager/desks/{name}',
  ],
  generator: ['GET /api/generator/rejected', 'GET /api/generator/summary'],
  'any key': ['GET /api/account'],
  read: [
    'GET /api/analytics/bars',
    'GET /api/analytics/cadence',
    'GET /api/analytics/confidence',
    'GET /api/analytics/correlation',
    'GET /api/analytics/movers',
    'GET /api/analytics/outliers',
    'GET /api/analytics/states',
    'GET /api/analytics/summary',
    'GET /api/destinations',
    'GET /api/destinations/types',
    'GET /api/destinations/{id}',
    'GET /api/destinations/{id}/attempts',
    'GET /api/market/verify',
    'GET /api/pills',
    'GET /api/pills/latest',
    'GET /api/symbols',
    'GET /api/usage',
  ],
  exports: [
    'DELETE /api/exports/{id}',
    'GET /api/exports',
    'GET /api/exports/{id}',
    'POST /api/exports',
  ],
  stream: [
    'DELETE /api/stream/sessions/{id}',
    'GET /api/stream/sessions',
    'POST /api/stream/tickets',
  ],
  'webhooks:read': [
    'GET /api/webhooks',
    'GET /api/webhooks/{id}',
    'GET /api/webhooks/{id}/attempts',
    'GET /api/webhooks/{id}/deliveries',
    'GET /api/webhooks/{id}/deliveries/{message_id}',
    'GET /api/webhooks/{id}/health',
  ],
  'webhooks:write': [
    'DELETE /api/webhooks/{id}',
    'PATCH /api/webhooks/{id}',
    'POST /api/webhooks',
    'POST /api/webhooks/{id}/deliveries/{message_id}/resend',
    'POST /api/webhooks/{id}/recover',
    'POST /api/webhooks/{id}/replay',
    'POST /api/webhooks/{id}/test',
  ],
  support: [
    'GET /api/support',
    'GET /api/support/{id}',
    'PATCH /api/support/{id}',
    'POST /api/support',
    'POST /api/support/{id}/messages',
  ],
};
type Access = keyof typeof ROUTES;

/** What a key with a single scope may call. */
const GRANTS: Readonly<Record<Scope, readonly Access[]>> = {
  read: ['read', 'webhooks:read'],
  stream: ['stream'],
  exports: ['exports'],
  'webhooks:read': ['webhooks:read'],
  'webhooks:write': ['webhooks:write', 'webhooks:read'],
  support: ['support'],
};

interface Operation {
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Shown>> };
}
interface Shown {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

const MESSAGE = 'msg_scopes';
let fixture: WebhookApi;
let customer: Customer;
let endpointId: string;
let operations: ReadonlyMap<string, Operation>;

beforeAll(async () => {
  fixture = await openWebhookApi();
  customer = await fixture.customerOf('institutional');
  const { body } = await customer.send('GET', '/docs/json');
  operations = new Map(
    Object.entries(body.paths as Record<string, Record<string, Operation>>).flatMap(([to, of]) =>
      Object.entries(of).map(([method, one]) => [`${method.toUpperCase()} ${to}`, one] as const),
    ),
  );
});

afterAll(() => fixture?.close());

test('every route has its place in the table; the document states its scope', () => {
  const found: Record<string, string[]> = {};
  // The operations of ingest are on another server, which knows no keys.
  for (const [name, { security }] of operations) {
    if (name.includes('/pillole')) continue;
    const key = security.find((one) => 'key' in one)?.key;
    const isGenerators = security.some((one) => 'generator' in one);
    if (isGenerators) {
      found.generator = [...(found.generator ?? []), name].sort();
      continue;
    }
    const access = key?.[0] ?? (key && 'any key') ?? (security.length > 0 ? 'session' : 'anyone');
    found[access] = [...(found[access] ?? []), name].sort();
  }
  expect(found).toEqual(ROUTES);
});

test('the scopes read and webhooks:read have no route that changes anything', () => {
  const reads = [...ROUTES.read, ...ROUTES['webhooks:read'], ...ROUTES['any key']];
  expect(reads.filter((name) => !name.startsWith('GET '))).toEqual([]);
});

test.each(['read', 'webhooks:read'] as const)(
  'whatever a key with the scope %s requests, no row changes',
  async (scope) => {
    const key = await prepare(scope);
    const before = await content();
    expect(Object.keys(before).length).toBeGreaterThan(10);
    for (const [access, names] of Object.entries(ROUTES)) {
      // Anyone may sign up or sign in; a key has no part in it.
      if (access !== 'anyone') for (const name of names) await call(name, key);
    }
    expect(await content()).toEqual(before);
  },
);

describe.each(SCOPES)('a key with the scope %s', (scope) => {
  let key: string;
  beforeAll(async () => {
    key = await prepare(scope);
  });

  test('calls exactly the routes of its scope', async () => {
    const granted = new Set<Access>(['anyone', 'generator', 'any key', ...GRANTS[scope]]);
    for (const [access, names] of Object.entries(ROUTES)) {
      for (const name of names) {
        const { status, code, needs } = await call(name, key);
        const of = `${name}: ${status} ${code}`;
        if (access === 'session') expect([status, code], of).toEqual([401, 'session_required']);
        else if (granted.has(access as Access)) {
          expect(['scope_missing', 'key_invalid', 'session_required'], of).not.toContain(code);
        } else expect([status, code, needs], of).toEqual([403, 'scope_missing', access]);
      }
    }
  });
});

async function call(name: string, key: string) {
  const [method, to] = name.split(' ') as ['GET', string];
  const path = to
    .replace('/webhooks/{id}', `/webhooks/${endpointId}`)
    .replace('{message_id}', MESSAGE)
    .replace(
      '/exports/{id}/file',
      `/exports/exp_000000000000/file?by=ses_000000000000&expires=1&signature=${'x'.repeat(43)}`,
    )
    .replace('/exports/{id}', '/exports/exp_000000000000')
    .replace('/keys/{id}', '/keys/key_000000000000')
    .replace('/checkouts/{id}', '/checkouts/chk_000000000000')
    .replace('/sessions/{id}', '/sessions/s_000000000000')
    .replace('/desks/{name}', '/desks/tokyo')
    .replace('{name}', 'ded_000000000000')
    .replace('{provider}', 'test');
  const shown = Object.values(operations.get(name)!.requestBody?.content ?? {})[0];
  const example = shown?.example ?? Object.values(shown?.examples ?? {})[0]?.value;
  const answer = await request(`${fixture.base}${path}`, {
    method,
    headers: {
      'x-api-key': key,
      ...(example === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(example === undefined ? {} : { body: JSON.stringify(example) }),
  });
  const text = await answer.body.text();
  const isJson = String(answer.headers['content-type']).includes('json');
  const { code, needs } = isJson ? JSON.parse(text) : {};
  return { status: answer.statusCode, code, needs };
}

/** Makes an endpoint with a message to resend or recover. @returns a key with this scope */
async function prepare(scope: Scope): Promise<string> {
  endpointId = (await fixture.createEndpoint(customer)).endpoint.id;
  await fixture.enable(endpointId);
  const at = new Date();
  const message = { message_id: MESSAGE, event_type: 'pill.published', pills: 1, body: '{}' };
  const state = { status: 'failed' as const, attempts: 10, occurred_at: at, next_at: at };
  const row = { endpoint_id: endpointId, ...message, ...state, settled_at: at };
  await fixture.db.insertInto('webhook_deliveries').values(row).execute();
  const made = await customer.send('POST', '/api/keys', { name: scope, scopes: [scope] });
  return made.body.key;
}

/**
 * A digest of each table, without the counts of calls and refusals, the last use of keys, sent
 * mails, and what processes record of themselves.
 */
async function content(): Promise<Record<string, string | null>> {
  const { name } = fixture.namespace;
  const { rows } = await sql<{ name: string }>`
    SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
      AND table_name !~ ('^(kysely|usage|calls|access_changes|security_events|audit_chains' ||
        '|pepper_holders|availability_hours|latency_hours|service_incidents)')`.execute(fixture.db);
  expect(rows.length, name).toBeGreaterThan(0);
  const digests: Record<string, string | null> = {};
  for (const { name: table } of rows) {
    const digest = await sql<{ digest: string | null }>`
      SELECT md5(string_agg(row, E'\n' ORDER BY row)) AS digest FROM (
        SELECT (CASE WHEN row ? 'mailed_at' THEN row->'id'
          ELSE row - 'last_used_at' - 'last_used_address' END)::text AS row
        FROM (SELECT to_jsonb(t) AS row FROM ${sql.table(table)} t) rows
        WHERE row->>'action' IS DISTINCT FROM 'access.refused') texts`.execute(fixture.db);
    digests[table] = digest.rows[0]!.digest;
  }
  return digests;
}
