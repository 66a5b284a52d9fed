import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { readPepper } from '../access/pepper.ts';
import { TIER_NAMES, type Tier } from '../access/tiers.ts';
import { type DemoOptions, demoEmail, ensureDemoKeys } from './demo-accounts.ts';
import { createKeys } from './keys.ts';
import { findAccount, readAccount } from './operator.ts';
import { createPasswords } from './passwords.ts';

let namespace: DatabaseNamespace;
let db: Database;
let options: Pick<DemoOptions, 'db' | 'keys'>;
let folder: string;
let file: string;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  const pepper = readPepper(namespace.env.KEY_PEPPER_FILE!);
  options = { db, keys: createKeys({ db, pepper }) };
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  await db.deleteFrom('accounts').execute();
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-demo-'));
  file = path.join(folder, 'demo-keys.json');
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function expectGood(written: Record<Tier, string>): Promise<void> {
  expect(Object.keys(written)).toEqual([...TIER_NAMES]);
  for (const tier of TIER_NAMES) {
    const account = (await findAccount(db, demoEmail(tier)))!;
    expect(await readAccount(db, account)).toMatchObject({
      liveKeys: 1,
      subscription: { tier, inForce: true },
      users: [{ verified: true }],
    });
    expect(await options.keys.recognise(account, written[tier])).toBeDefined();
  }
}

const readKeys = async () => JSON.parse(await readFile(file, 'utf8')) as Record<Tier, string>;

test('the file holds live keys and is private, even after several concurrent starts', async () => {
  const results = await Promise.all([1, 2, 3].map(() => ensureDemoKeys({ ...options, file })));
  const made = results.filter((result) => result !== undefined);
  expect(made).toEqual([await readKeys()]);
  await expectGood(await readKeys());
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(['demo-keys.json']);
  const before = await readKeys();
  expect(await ensureDemoKeys({ ...options, file })).toBeUndefined();
  expect(await readKeys()).toEqual(before);
});

test.each([
  ['missing', undefined],
  ['from another database', JSON.stringify({ basic: 'x', pro: 'y', institutional: 'z' })],
  ['damaged', '{"basic"'],
  ['not an object', 'null'],
])('a file that is %s is replaced, and the old keys are revoked', async (_, content) => {
  const old = (await ensureDemoKeys({ ...options, file }))!;
  await rm(file);
  if (content !== undefined) await writeFile(file, content, { mode: 0o644 });
  const made = await ensureDemoKeys({ ...options, file });
  expect(made).toEqual(await readKeys());
  expect(made).not.toEqual(old);
  await expectGood(await readKeys());
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

test('an attempt at a demo password costs as much as at any other, and never succeeds', async () => {
  await ensureDemoKeys({ ...options, file });
  const { password_hash: own } = await db
    .selectFrom('users')
    .select('password_hash')
    .where('email', '=', demoEmail('pro'))
    .executeTakeFirstOrThrow();
  const costOf = (hash: string) => hash.split('$').slice(1, 3);
  expect(costOf(own)).toEqual(costOf(await createPasswords().hash('correct horse battery')));
  expect(await createPasswords().verify('correct horse battery', own)).toBe(false);
});

test('an old file is replaced on a fresh database', async () => {
  await ensureDemoKeys({ ...options, file });
  const old = await readKeys();
  await db.deleteFrom('accounts').execute();
  await ensureDemoKeys({ ...options, file });
  expect(await readKeys()).not.toEqual(old);
  await expectGood(await readKeys());
});
