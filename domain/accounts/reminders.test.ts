import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { newId } from '../access/id.ts';
import { raiseReminders } from './reminders.ts';

const DAY_MS = 86_400_000;

let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

function inDays(days: number): Date {
  return new Date(Date.now() + days * DAY_MS);
}

async function eventsOf(accountId: string) {
  const events = await db
    .selectFrom('account_events')
    .select(['type', 'data'])
    .where('account_id', '=', accountId)
    .orderBy('id')
    .execute();
  return events.map(({ type, data }) => ({ type, ...(data as { days_left?: number }) }));
}

test('an overdue payment raises one reminder a day until access ends, and then one event', async () => {
  const { id } = await createTestAccount(db, namespace, { tier: 'pro' });
  const pastDueFor = async (days: number) => {
    await db
      .updateTable('subscriptions')
      .set({ status: 'past_due', past_due_since: sinceFirst ?? inDays(-days) })
      .where('account_id', '=', id)
      .execute();
    await Promise.all([raiseReminders(db), raiseReminders(db)]);
    await raiseReminders(db);
    return eventsOf(id);
  };
  let sinceFirst: Date | undefined;
  expect(await pastDueFor(0.5)).toEqual([]);
  sinceFirst = inDays(-1.5);
  expect(await pastDueFor(1.5)).toMatchObject([{ type: 'payment.reminder', days_left: 6 }]);
  sinceFirst = inDays(-6.5);
  expect((await pastDueFor(6.5)).map((event) => event.days_left)).toEqual([6, 1]);
  sinceFirst = inDays(-7.5);
  const ended = { type: 'account.suspended', reason: 'payment_due', tier: 'pro' };
  expect((await pastDueFor(7.5)).slice(2)).toMatchObject([ended]);
  // An account whose access ended long ago gets no mail about it.
  sinceFirst = inDays(-20);
  expect(await pastDueFor(20)).toHaveLength(3);
});

test('a key that expires within 7 days raises one event; a short-lived, rotated or revoked one none', async () => {
  const { id, keyId } = await createTestAccount(db, namespace, { tier: 'pro' });
  await db
    .updateTable('api_keys')
    .set({ created_at: inDays(-30), expires_at: inDays(6) })
    .where('id', '=', keyId)
    .execute();
  const other = async (name: string, row: object) => {
    await db
      .insertInto('api_keys')
      .values({
        id: newId('key'),
        account_id: id,
        hash: Buffer.from(name),
        hint: 'pil_live_…',
        name,
        scopes: ['read'],
        created_by: 'test',
        created_at: inDays(-30),
        expires_at: inDays(6),
        ...row,
      })
      .execute();
  };
  await other('short-lived', { created_at: inDays(-1) });
  await other('rotated', { replaced_by: keyId });
  await other('revoked', { revoked_at: inDays(-1) });
  await other('later', { expires_at: inDays(8) });
  await other('over', { expires_at: inDays(-1) });
  await Promise.all([raiseReminders(db), raiseReminders(db)]);
  expect(await eventsOf(id)).toMatchObject([{ type: 'key.expiring', key: keyId }]);
});
