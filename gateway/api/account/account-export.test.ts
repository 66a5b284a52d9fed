import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
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

test('only a session of the account exports it', async () => {
  const carl = await accounts.customer('carl', 'pro');
  const { key } = (await carl.send('POST', '/api/keys', { name: 'machine' })).body;
  const byKey = await carl.send('GET', '/api/account/export', undefined, {
    'x-api-key': key,
    cookie: '',
  });
  expect([byKey.status, byKey.body.code]).toEqual([401, 'session_required']);
});
