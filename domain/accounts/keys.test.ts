import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { isWellFormedKey } from '../access/key-format.ts';
import { readPepper } from '../access/pepper.ts';
import { SCOPES } from '../access/scopes.ts';
import { readAudit } from './audit.ts';
import { createKeys, KEY_LIMITS, type Keys } from './keys.ts';

const BY = { actor: 'user:usr_test', address: '203.0.113.7' } as const;

let namespace: DatabaseNamespace;
let db: Database;
let keys: Keys;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  keys = createKeys({ db, pepper: readPepper(namespace.env.KEY_PEPPER_FILE!) });
});

afterAll(async () => {
  await db?.destroy();
});

async function newAccount(tier: 'basic' | null = 'basic') {
  return createTestAccount(db, namespace, { tier });
}

async function create(accountId: string, more: object = {}) {
  const made = await keys.create({ ...BY, accountId, name: 'k', scopes: ['read'], ...more });
  if (made.kind !== 'ok') throw new Error(`no key: ${JSON.stringify(made)}`);
  return made;
}

test('60 parallel creations leave exactly the limit of live keys', async () => {
  const { id } = await newAccount();
  const results = await Promise.all(
    Array.from({ length: 60 }, () =>
      keys.create({ ...BY, accountId: id, name: 'k', scopes: ['read'] }),
    ),
  );
  const made = results.filter(({ kind }) => kind === 'ok').length;
  // The account was created with one key.
  expect(made).toBe(KEY_LIMITS.livePerAccountMax - 1);
  expect(results.filter(({ kind }) => kind === 'limit')).toHaveLength(60 - made);
  const live = (await keys.list(id)).filter((key) => key.live);
  expect(live).toHaveLength(KEY_LIMITS.livePerAccountMax);

  // A key that ended makes room; a rotation with an overlap would exceed the limit.
  const some = live[0]!;
  expect(await keys.rotate({ ...BY, accountId: id, keyId: some.id })).toEqual({ kind: 'limit' });
  const swapped = await keys.rotate({ ...BY, accountId: id, keyId: some.id, overlapS: 0 });
  expect(swapped?.kind).toBe('ok');
  await keys.revoke({ ...BY, accountId: id, keyId: live[1]!.id });
  await create(id);
});

test('a key is made only with a subscription in force', async () => {
  const { id } = await newAccount(null);
  const wanted = { ...BY, accountId: id, name: 'k', scopes: ['read'] } as const;
  expect(await keys.create(wanted)).toEqual({ kind: 'subscription_required' });
  const missing = { ...wanted, accountId: 'acc_none' };
  expect(await keys.create(missing)).toEqual({ kind: 'subscription_required' });
});

test('a rotation keeps the settings, and the old key ends after the overlap', async () => {
  const { id } = await newAccount();
  const { key, record } = await create(id, { name: 'bot', allowCidrs: ['10.1.2.3/8'] });
  expect(record.allowCidrs).toEqual(['10.0.0.0/8']);
  const rotated = await keys.rotate({ ...BY, accountId: id, keyId: record.id, overlapS: 3_600 });
  if (rotated?.kind !== 'ok') throw new Error('not rotated');
  expect(isWellFormedKey(rotated.key)).toBe(true);
  expect(rotated.key).not.toBe(key);
  expect(rotated.record).toMatchObject({ name: 'bot', scopes: ['read'], live: true });
  expect(rotated.record.allowCidrs).toEqual(['10.0.0.0/8']);
  expect(rotated.old).toMatchObject({ live: true, replacedBy: rotated.record.id });
  const leftMs = rotated.old.expiresAt!.getTime() - Date.now();
  expect(Math.abs(leftMs - 3_600_000)).toBeLessThan(60_000);
  const again = { ...BY, accountId: id, keyId: record.id };
  expect(await keys.rotate(again)).toEqual({ kind: 'ended' });
  expect((await keys.recognise(id, key))?.id).toBe(record.id);

  const last = await keys.rotate({ ...again, keyId: rotated.record.id, overlapS: 0 });
  expect(last).toMatchObject({ kind: 'ok', old: { live: false } });
  expect(await keys.recognise(id, rotated.key)).toBeUndefined();
});

test('a revoked key stays revoked, with one audit entry', async () => {
  const { id } = await newAccount();
  const { record, key } = await create(id);
  const request = { ...BY, accountId: id, keyId: record.id };
  const first = await keys.revoke(request);
  expect(first).toMatchObject({ live: false });
  expect(await keys.revoke(request)).toEqual(first);
  expect(await keys.rotate(request)).toEqual({ kind: 'ended' });
  expect(await keys.revokeAll({ ...BY, accountId: id })).toBe(1);
  expect(await keys.revokeAll({ ...BY, accountId: id })).toBe(0);
  const audit = await readAudit(db, id, { limit: 50 });
  const actions = audit.map(({ action }) => action).reverse();
  expect(actions).toEqual(['key.created', 'key.revoked', 'keys.revoked']);
  expect(audit.every(({ actor, address }) => actor === BY.actor && address === BY.address)).toBe(
    true,
  );
  expect(JSON.stringify(audit)).not.toContain(key);
  const older = await readAudit(db, id, { limit: 1, before: audit[0]!.id });
  expect(older).toEqual([audit[1]]);
});

test("another account's key counts as unknown", async () => {
  const [mine, other] = await Promise.all([newAccount(), newAccount()]);
  const request = { ...BY, accountId: mine.id, keyId: other.keyId };
  expect(await keys.get(mine.id, other.keyId)).toBeUndefined();
  expect(await keys.update({ ...request, name: 'x' })).toBeUndefined();
  expect(await keys.rotate(request)).toBeUndefined();
  expect(await keys.revoke(request)).toBeUndefined();
  expect(await keys.recognise(mine.id, other.key)).toBeUndefined();
  expect(await keys.get(other.id, other.keyId)).toMatchObject({ name: 'test', live: true });
});

test('a list has live keys first, then keys that ended in the last 30 days', async () => {
  const { id, keyId } = await newAccount();
  const [old, recent] = [await create(id), await create(id)];
  const endedAt = (days: number) => new Date(Date.now() - days * 86_400_000);
  for (const [record, days] of [
    [old.record, 31],
    [recent.record, 29],
  ] as const) {
    await db
      .updateTable('api_keys')
      .set({ revoked_at: endedAt(days) })
      .where('id', '=', record.id)
      .execute();
  }
  expect((await keys.list(id)).map((key) => key.id)).toEqual([keyId, recent.record.id]);
});

test('a change of settings is audited', async () => {
  const { id, keyId } = await newAccount();
  const allowCidrs = ['2001:DB8::1/32', '192.0.2.1'];
  const changed = await keys.update({ ...BY, accountId: id, keyId, name: 'new', allowCidrs });
  expect(changed).toMatchObject({
    kind: 'ok',
    record: {
      name: 'new',
      scopes: SCOPES,
      allowCidrs: ['2001:db8::/32', '192.0.2.1/32'],
    },
  });
  const [entry] = await readAudit(db, id, { limit: 1 });
  expect(entry).toMatchObject({ action: 'key.updated', detail: { before: { name: 'test' } } });
});

describe('an invalid setting is refused', () => {
  test.each([
    ['name', { name: '' }],
    ['name', { name: '   ' }],
    ['name', { name: 'a\u0000b' }],
    ['name', { name: 'a'.repeat(101) }],
    ['scopes', { scopes: [] }],
    ['scopes', { scopes: ['write'] }],
    ['expires_at', { expiresAt: new Date(Date.now() - 1) }],
    ['expires_at', { expiresAt: new Date(Number.NaN) }],
    ['allow_cidrs', { allowCidrs: ['10.0.0.0/33'] }],
  ])('%s %j', async (field, more) => {
    const wanted = { ...BY, accountId: 'acc_none', name: 'k', scopes: ['read'], ...more };
    const answer = await keys.create(wanted as Parameters<Keys['create']>[0]);
    expect(answer).toMatchObject({ kind: 'invalid', field });
  });

  test.each([-1, Number.NaN, KEY_LIMITS.overlapSMax + 1])('overlap %s', async (overlapS) => {
    const { id, keyId } = await newAccount();
    const answer = await keys.rotate({ ...BY, accountId: id, keyId, overlapS });
    expect(answer).toMatchObject({ kind: 'invalid', field: 'overlap_s' });
  });
});

test('no row contains the pepper', async () => {
  const pepper = readFileSync(namespace.env.KEY_PEPPER_FILE!, 'utf8').trim();
  const rows = await db.selectFrom('audit_log').selectAll().execute();
  expect(JSON.stringify(rows)).not.toContain(pepper);
});

test.each([
  [
    ['read', 'stream'],
    ['read', 'stream', 'support'],
  ],
  [['read'], ['read']],
  [['stream'], ['stream']],
] as const)('of the keys made before, %j becomes %j', async (before, after) => {
  const { id, keyId } = await createTestAccount(db, namespace, { tier: 'basic', scopes: before });
  const file = new URL('../../deploy/sql/postgres/0012-key-scopes.sql', import.meta.url);
  for (const _ of [1, 2]) await sql.raw(readFileSync(file, 'utf8')).execute(db);
  expect((await keys.get(id, keyId))?.scopes).toEqual(after);
});
