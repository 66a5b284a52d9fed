import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { processesThatFit } from './capacity.ts';
import { readDesiredStreams } from './desired-streams.ts';
import { createDedicatedStreams, DEDICATED_LIMITS } from './streams.ts';

const PORTS = { from: 30_000, to: 39_999 };

let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

beforeEach(async () => {
  await db.deleteFrom('dedicated_streams').execute();
});

afterAll(async () => {
  await db?.destroy();
});

async function newAccount(): Promise<string> {
  return (await createTestAccount(db, namespace, { tier: 'institutional' })).id;
}

const wanted = (accountId: string) => ({ accountId, label: 'desk', actor: 'system' });

test("all accounts together stay within the operator's limit, even concurrently", async () => {
  const streams = createDedicatedStreams(db, PORTS, 3);
  const accounts = await Promise.all(Array.from({ length: 8 }, newAccount));
  const made = await Promise.all(accounts.map((id) => streams.create(wanted(id))));
  expect(made.filter(({ kind }) => kind === 'ok')).toHaveLength(3);
  expect(made.filter(({ kind }) => kind !== 'ok')).toEqual(
    Array.from({ length: 5 }, () => ({ kind: 'full', max: 3 })),
  );
  // A successor without an overlap takes the place of the old socket; with one there is no place.
  const [first] = made.flatMap((one) => (one.kind === 'ok' ? [one.stream] : []));
  const { accountId, name } = first!;
  const request = { accountId, name, actor: 'system' };
  expect((await streams.rotate({ ...request, overlapS: 60 }))?.kind).toBe('full');
  const rotated = await streams.rotate({ ...request, overlapS: 0 });
  if (rotated?.kind !== 'ok') throw new Error(rotated?.kind);
  // A removed socket makes room.
  await streams.remove({ ...request, name: rotated.stream.name });
  expect((await streams.create(wanted(accounts[7]!))).kind).toBe('ok');
});

test("all accounts together stay within PostgreSQL's connections", async () => {
  const streams = createDedicatedStreams(db, PORTS, 10_000);
  const accountId = await newAccount();
  const rows = Array.from({ length: 2_000 }, (_, n) => ({
    name: `ded_test${n}`,
    account_id: accountId,
    label: 'desk',
    port: 30_000 + n,
    created_by: 'system',
  }));
  await db.insertInto('dedicated_streams').values(rows).execute();
  const refused = await streams.create(wanted(await newAccount()));
  if (refused.kind !== 'full') throw new Error(refused.kind);
  expect(refused.max).toBeGreaterThan(0);
  expect(refused.max).toBeLessThan(2_000);
});

test.each([
  [512, 1],
  [8 * 1_024, 10],
  [256 * 1_024, 16],
])('a machine of %i MiB fits %i processes by default', (mib, count) => {
  expect(processesThatFit(mib * 1_024 * 1_024)).toBe(count);
});

test('desired streams take as many statements for forty accounts as for one', async () => {
  let statements = 0;
  const counted = db.withPlugin({
    transformQuery({ node }) {
      statements += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const streams = createDedicatedStreams(db, PORTS, 10_000);
  const without = await createTestAccount(db, namespace, { tier: 'pro' });
  expect((await streams.create(wanted(without.id))).kind).toBe('ok');
  const [first] = await readDesiredStreams(counted, Date.now());
  expect(first).toMatchObject({ accountId: without.id, denial: { code: 'tier_too_low' } });
  const forOne = statements;
  await db
    .updateTable('accounts')
    .set({ status: 'suspended', suspended_reason: 'Unpaid' })
    .where('id', '=', without.id)
    .execute();
  const [suspended] = await readDesiredStreams(db, Date.now());
  expect(suspended?.denial).toMatchObject({
    code: 'account_suspended',
    message: expect.stringContaining('Unpaid'),
  });
  await db.deleteFrom('dedicated_streams').execute();
  const accounts = await Promise.all(Array.from({ length: 40 }, newAccount));
  const rows = accounts.map((account_id, n) => ({
    name: `ded_test${n}`,
    account_id,
    label: 'desk',
    port: 30_000 + n,
    created_by: 'system',
  }));
  await db.insertInto('dedicated_streams').values(rows).execute();
  statements = 0;
  const all = await readDesiredStreams(counted, Date.now());
  expect(all.map(({ accountId, denial }) => [accountId, denial]).toSorted()).toEqual(
    accounts.map((id) => [id, undefined]).toSorted(),
  );
  expect(statements).toBe(forOne);
});

test("the sockets of an account are bounded, and others' sockets count as unknown", async () => {
  const accountId = await newAccount();
  const actor = 'system';
  const streams = createDedicatedStreams(db, PORTS, 1_000);
  const create = () => streams.create({ accountId, label: 'desk', actor });
  const made = [];
  for (let i = 0; i < DEDICATED_LIMITS.perAccountMax; i += 1) made.push(await create());
  expect(new Set(made.map((one) => one.kind))).toEqual(new Set(['ok']));
  expect((await create()).kind).toBe('limit');
  const [first] = await streams.list(accountId);
  const name = first!.name;
  expect((await streams.rotate({ accountId, name, actor, overlapS: 60 }))?.kind).toBe('limit');
  expect((await streams.get(accountId, name))?.replacedBy).toBeUndefined();
  expect((await streams.rotate({ accountId, name, actor, overlapS: 0 }))?.kind).toBe('ok');
  const stranger = await newAccount();
  const theirs = (await streams.list(accountId))[0]!.name;
  const request = { accountId: stranger, name: theirs, actor };
  expect([
    await streams.get(stranger, theirs),
    await streams.rotate({ ...request, overlapS: 0 }),
    await streams.remove(request),
  ]).toEqual([undefined, undefined, undefined]);
  const none = createDedicatedStreams(db, { from: first!.port, to: first!.port });
  expect((await none.create({ accountId: stranger, label: 'x', actor })).kind).toBe('no_port');
});
