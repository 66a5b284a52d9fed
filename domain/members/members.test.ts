import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { newId } from '../access/id.ts';
import { createSessions } from '../accounts/sessions.ts';
import { changeRole, removeMember } from './members.ts';

let namespace: DatabaseNamespace;
/** Two pools, as of two processes: changes of one account in one process never run side by side. */
let here: Database;
let there: Database;
let accountId: string;
let ada: string;
let bea: string;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  [here, there] = [openTestDatabase(namespace), openTestDatabase(namespace)];
});

beforeEach(async () => {
  accountId = (await createTestAccount(here, namespace, { tier: 'institutional' })).id;
  [ada, bea] = [await addOwner(), await addOwner()];
});

afterAll(async () => {
  await here?.destroy();
  await there?.destroy();
});

async function addOwner(): Promise<string> {
  const id = newId('usr');
  const email = `${id}@example.com`;
  const row = { id, account_id: accountId, email, password_hash: 'none' };
  await here.insertInto('users').values(row).execute();
  return id;
}

/** A change that one member makes to another. */
const by = (userId: string, memberId: string) => ({
  accountId,
  userId,
  memberId,
  actor: `user:${userId}`,
  address: '192.0.2.1',
});

async function owners(): Promise<readonly string[]> {
  const rows = await here
    .selectFrom('users')
    .select('id')
    .where('account_id', '=', accountId)
    .where('role', '=', 'owner')
    .execute();
  return rows.map(({ id }) => id);
}

const ROUNDS = Array.from({ length: 8 }, (_, round) => round);

describe('of two owners in two processes', () => {
  test.each(ROUNDS)('who demote each other, one stays an owner (%i)', async () => {
    const role = 'read_only';
    const results = await Promise.all([
      changeRole(here, { ...by(ada, bea), role }),
      changeRole(there, { ...by(bea, ada), role }),
    ]);
    expect(results.map((one) => one?.kind).sort()).toEqual(['forbidden', 'ok']);
    expect(await owners()).toHaveLength(1);
  });

  test.each(ROUNDS)('who step down or remove each other, one stays (%i)', async () => {
    const results = await Promise.all([
      changeRole(here, { ...by(ada, ada), role: 'billing' }),
      removeMember(there, by(bea, bea)),
    ]);
    expect(results.map((one) => one?.kind).sort()).toEqual(['last_owner', 'ok']);
    expect(await owners()).toHaveLength(1);
  });
});

test('a change ends the sessions of the member, and of nobody else', async () => {
  const sessions = createSessions(here);
  const [own, other] = [await sessions.begin(ada, '192.0.2.1'), await sessions.begin(bea, '::1')];
  expect((await changeRole(here, { ...by(ada, bea), role: 'admin' }))?.kind).toBe('ok');
  expect(await sessions.find(own.token)).toMatchObject({ role: 'owner' });
  expect(await sessions.find(other.token)).toBeUndefined();
});

test('a member of another account is unknown', async () => {
  const own = accountId;
  accountId = (await createTestAccount(here, namespace, { tier: 'institutional' })).id;
  const stranger = await addOwner();
  accountId = own;
  expect(await changeRole(here, { ...by(ada, stranger), role: 'read_only' })).toBeUndefined();
  expect(await removeMember(here, by(ada, stranger))).toBeUndefined();
  // Nor does somebody from there change anything here.
  const refused = await changeRole(here, { ...by(stranger, ada), role: 'read_only' });
  expect(refused?.kind).toBe('forbidden');
});
