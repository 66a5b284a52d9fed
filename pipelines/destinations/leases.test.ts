// Which process may deliver, and what another one can still write: on PostgreSQL alone.
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../domain/access/id.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createDatabaseNamespace } from '../../testing/database-namespace.ts';
import { createLeases } from './leases.ts';
import { createPositionStore, LeaseLostError } from './position-store.ts';

const NO_FILTER = {
  ...{ symbols: [], states: [], backfill: false },
  ...{ minConfidence: undefined, minSpread: undefined, maxSpread: undefined },
};
const EPOCH = 'e1';
let db: ReturnType<typeof openTestDatabase>;
let accountId: string;

beforeAll(async () => {
  const namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  accountId = (await createTestAccount(db, namespace, { tier: 'institutional' })).id;
});
afterAll(() => db?.destroy());

async function add(): Promise<string> {
  const id = newId('dst');
  await db
    .insertInto('destinations')
    .values({
      ...{ id, account_id: accountId, name: 'test', type: 's3', created_by: 'system' },
      ...{ settings: '{}', filter: JSON.stringify(NO_FILTER), sealed: Buffer.from('x') },
    })
    .execute();
  return id;
}

const expire = (ids: readonly string[]) =>
  db
    .updateTable('destinations')
    .set({ owner_until: sql<Date>`now() - interval '1 second'` })
    .where('id', 'in', ids)
    .execute();

test('a take concerns one destination, and of two processes one gets it, also when several leases are over', async () => {
  const ids = [await add(), await add(), await add()];
  const [one, two] = [createLeases(db), createLeases(db)];
  const owners = await Promise.all(ids.map((id) => one.take(id)));
  expect(new Set(owners).size).toBe(3);
  expect(await Promise.all(ids.map((id) => two.take(id)))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  await expire(ids);
  expect((await two.read()).get(ids[1]!)).toMatchObject({ isFree: true, isWanted: true });
  const taken = await two.take(ids[1]!);
  expect(taken).toBeDefined();
  expect(await one.renew(owners as string[])).toEqual(new Set([owners[0], owners[2]]));
  expect(await two.renew([taken!])).toEqual(new Set([taken]));
  await two.release(taken!);
  expect(await one.take(ids[1]!)).toBeDefined();
});

test('the end of the tier ends a destination that its owner has paused, too, so that resuming delivers nothing of that time', async () => {
  const namespace = await createDatabaseNamespace();
  const own = openTestDatabase(namespace);
  try {
    const { id: account_id } = await createTestAccount(own, namespace, { tier: 'pro' });
    const id = newId('dst');
    const row = { id, account_id, name: 'test', type: 's3', created_by: 'system' };
    const filter = JSON.stringify(NO_FILTER);
    await own
      .insertInto('destinations')
      .values({ ...row, settings: '{}', filter, sealed: Buffer.from('x'), paused_by: 'owner' })
      .execute();
    expect((await createLeases(own).read()).get(id)).toMatchObject({ isWanted: false });
    const { paused_by } = await own
      .selectFrom('destinations')
      .select('paused_by')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    expect(paused_by).toBe('entitlement');
  } finally {
    await own.destroy();
  }
});

test('what a former owner writes has no effect, and shows that it lost the lease', async () => {
  const id = await add();
  const [one, two] = [createLeases(db), createLeases(db)];
  const former = createPositionStore(db, {
    ...{ destinationId: id, epoch: EPOCH, owner: (await one.take(id))! },
  });
  await former.begin(0, { offset: 100, symbols: new Map() });
  await former.plan(0, 100, { endOffset: 150, filter: NO_FILTER });
  await expire([id]);
  const owner = (await two.take(id))!;
  const present = createPositionStore(db, { destinationId: id, epoch: EPOCH, owner });
  const found = (await present.read()).get(0);
  expect(found).toMatchObject({ nextOffset: 100, plan: { endOffset: 150 } });
  const receivedAt = Date.now() * 1_000;
  const progress = { nextOffset: 150, delivered: { receivedAt }, snapshot: undefined };
  await present.advance(0, progress);
  for (const write of [
    () => former.plan(0, 100, { endOffset: 120, filter: NO_FILTER }),
    () => former.advance(0, { ...progress, nextOffset: 120 }),
    () => former.begin(0, { offset: 0, symbols: new Map() }),
    () => former.begin(7, { offset: 0, symbols: new Map() }),
  ]) {
    await expect(write()).rejects.toBeInstanceOf(LeaseLostError);
  }
  const rows = await present.read();
  expect([...rows.keys()]).toEqual([0]);
  expect(rows.get(0)).toMatchObject({ nextOffset: 150, publishedEnd: 150, plan: undefined });
});

test('a destination that was removed cannot be written', async () => {
  const id = await add();
  const owner = (await createLeases(db).take(id))!;
  const store = createPositionStore(db, { destinationId: id, epoch: EPOCH, owner });
  await store.begin(0, { offset: 0, symbols: new Map() });
  await db.deleteFrom('destinations').where('id', '=', id).execute();
  await expect(store.plan(0, 0, { endOffset: 5, filter: NO_FILTER })).rejects.toBeInstanceOf(
    LeaseLostError,
  );
});
