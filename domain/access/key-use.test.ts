import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { waitFor } from '../../testing/wait.ts';
import { createKeyUse } from './key-use.ts';

let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

const read = (keyId: string) =>
  db
    .selectFrom('api_keys')
    .select(['last_used_at', 'last_used_address'])
    .where('id', '=', keyId)
    .executeTakeFirstOrThrow();

test('the last use of each key is written without a change of access', async () => {
  const [first, second, unused] = await Promise.all(
    [1, 2, 3].map(() => createTestAccount(db, namespace, { tier: 'pro' })),
  );
  const changes = await db.selectFrom('access_changes').selectAll().execute();
  const use = createKeyUse({ db, log: silentLog, intervalMs: 20 });
  use.note(first!.keyId, '192.0.2.1');
  use.note(first!.keyId, '192.0.2.2');
  use.note(second!.keyId, '2001:db8::1');
  use.note('key_gone', '192.0.2.9');
  await waitFor('the write', async () => (await read(first!.keyId)).last_used_at !== null);
  expect((await read(first!.keyId)).last_used_address).toBe('192.0.2.2');
  expect((await read(second!.keyId)).last_used_address).toBe('2001:db8::1');
  expect(await read(unused!.keyId)).toEqual({ last_used_at: null, last_used_address: null });
  expect(await db.selectFrom('access_changes').selectAll().execute()).toEqual(changes);
  await use.close();
});

test('a close writes the remaining uses', async () => {
  const { keyId } = await createTestAccount(db, namespace, { tier: 'pro' });
  const use = createKeyUse({ db, log: silentLog });
  use.note(keyId, '192.0.2.1');
  await use.close();
  expect((await read(keyId)).last_used_address).toBe('192.0.2.1');
});
