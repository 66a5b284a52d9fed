import { generateKeyPairSync } from 'node:crypto';
import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../../domain/access/id.ts';
import { answerTicket } from '../../../domain/support/tickets.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Customer } from '../testing/customer.ts';

let accounts: AccountApi;
let db: Database;

beforeAll(async () => {
  accounts = await openAccountApi();
  db = openTestDatabase(accounts.namespace);
});

afterAll(async () => {
  await db?.destroy();
  await accounts?.close();
});

async function exportOf(customer: Customer) {
  const answer = await request(`${accounts.base}/api/account/export`, {
    headers: customer.credentials(),
  });
  const text = await answer.body.text();
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { answer, text, lines, of: (kind: string) => lines.filter((line) => line.kind === kind) };
}

test('an export has all of the account, no secret, nothing of others, and an end', async () => {
  const alice = await accounts.customer('alice', 'pro');
  const bob = await accounts.customer('bob', 'pro');
  const { key, record } = (await alice.send('POST', '/api/keys', { name: 'desk 4' })).body;
  await bob.send('POST', '/api/keys', { name: 'of bob' });
  const { ticket } = (
    await alice.send('POST', '/api/support', { subject: 'A bill', message: 'Why?\nWhy?' })
  ).body;
  await answerTicket(db, { actor: 'operator:test', ticketId: ticket, message: 'Because.' });
  const account = (await alice.send('GET', '/api/account')).body.id as string;
  await sql`INSERT INTO usage_days (account_id, day, used)
    SELECT ${account}, '2024-01-01'::date + n, n FROM generate_series(0, 699) AS n`.execute(db);

  const { answer, text, lines, of } = await exportOf(alice);
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([
    200,
    'application/x-ndjson',
  ]);
  expect(answer.headers['content-disposition']).toBe(`attachment; filename="${account}.ndjson"`);
  expect(of('account')).toMatchObject([{ id: account, status: 'active' }]);
  expect(of('user')).toMatchObject([{ email: alice.email }]);
  expect(of('subscription')).toMatchObject([{ tier: 'pro', status: 'active' }]);
  expect(of('key')).toMatchObject([{ id: record.id, name: 'desk 4' }]);
  expect(of('key')[0]!.created_at).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  expect(of('ticket')).toMatchObject([{ id: ticket, subject: 'A bill', state: 'answered' }]);
  expect(of('ticket_message')).toMatchObject([{ ticket, author: 'support', message: 'Because.' }]);
  // More than one page of rows; of 2025-11-30, the 700th day, and before.
  expect(of('usage_day').filter(({ day }) => String(day) < '2025-12')).toHaveLength(700);
  const actions = of('audit').map(({ action }) => action);
  expect(actions).toContain('key.created');
  expect(actions).toContain('ticket.answered');
  expect(lines.at(-1)).toEqual({ kind: 'end', lines: lines.length - 1 });
  expect(text).not.toContain(key);
  expect(text).not.toMatch(/hash|bob@|of bob/);
});

test('an export shows exports of pills, destinations, and schemes with their public keys, as the API does', async () => {
  const dora = await accounts.customer('dora', 'institutional');
  const account = (await dora.send('GET', '/api/account')).body.id as string;
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const der = publicKey.export({ format: 'der', type: 'spki' });
  await sql`INSERT INTO authentication_schemes
      (id, account_id, name, kind, algorithms, public_key, scopes, created_by)
    VALUES (${newId('aut')}, ${account}, 'desk', 'signature', '{rsa-pss-sha512}', ${der}, '{read}',
      'user:x')`.execute(db);
  const asked = { from: '2026-11-19T00:00:00Z', to: '2026-11-20T00:00:00Z', format: 'parquet' };
  await sql`INSERT INTO exports (id, account_id, created_by, request, state, finished_at, epoch,
      position, rows_estimated, rows_done, bytes, sha256, receipt, file)
    VALUES (${newId('exp')}, ${account}, 'user:x', ${JSON.stringify({ asked, bytes: 1 })}, 'done',
      now(), 'k', 'k:0-9', 7, 6, 360, 'ab', ${JSON.stringify({ count: 6 })}, 'a name on the disk'
    )`.execute(db);
  await sql`INSERT INTO destinations (id, account_id, name, type, settings, filter, sealed, created_by)
    VALUES (${newId('dst')}, ${account}, 'lake', 's3', '{"bucket":"example-pills"}', '{}', 'a seal',
      'user:x')`.execute(db);
  const { text, of } = await exportOf(dora);
  expect(of('destination')).toMatchObject([{ type: 's3', settings: { bucket: 'example-pills' } }]);
  const [scheme] = of('authentication_scheme');
  expect(scheme!.public_key).toBe(publicKey.export({ format: 'pem', type: 'spki' }));
  const [made] = of('export');
  expect(made).toMatchObject({ request: asked, state: 'done', position: 'k:0-9', rows: 6 });
  expect(made).toMatchObject({ bytes: 360, sha256: 'ab', receipt: { count: 6 } });
  expect(made!.finished_at).toMatch(/^20\d\d-.*\.\d{6}Z$/);
  expect(text).not.toMatch(/on the disk|a seal/);
});

/** Tables that refer to an account, and why they are not in its export; '': they are. */
const TABLES = {
  ...{ users: '', subscriptions: '', checkouts: '', api_keys: '', authentication_schemes: '' },
  ...{ exports: '', webhook_endpoints: '', support_tickets: '', usage_days: '' },
  ...{ desks: '', destinations: '', invitations: '' },
  account_events: 'mails and webhooks that were sent; the audit log has their causes',
  dedicated_streams: 'set up by the operator; GET /api/account shows them',
  stream_sessions: 'connections of this moment',
  stream_tickets: 'valid for seconds',
  usage_calls: 'the parts of usage_days; GET /api/usage shows them',
  usage_hours: 'the parts of usage_days; GET /api/usage shows them',
  webhook_secrets: 'secrets',
};

test('each table of accounts is in the export, or has a reason not to be', async () => {
  const { rows } = await sql<{ name: string }>`
    SELECT DISTINCT conrelid::regclass::text AS name FROM pg_constraint
    WHERE contype = 'f' AND confrelid = 'accounts'::regclass`.execute(db);
  expect(rows.map(({ name }) => name).sort()).toEqual(Object.keys(TABLES).sort());
});

test('only a session of the account exports it', async () => {
  const carl = await accounts.customer('carl', 'pro');
  const { key } = (await carl.send('POST', '/api/keys', { name: 'machine' })).body;
  const byKey = await carl.send('GET', '/api/account/export', undefined, {
    'x-api-key': key,
    cookie: '',
  });
  expect([byKey.status, byKey.body.code]).toEqual([401, 'session_required']);
});
