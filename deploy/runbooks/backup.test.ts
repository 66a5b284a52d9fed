import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPepper } from '../../domain/access/pepper.ts';
import { createKeys } from '../../domain/accounts/keys.ts';
import { silentLog } from '../../lib/log/log.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import { createTestAccount } from '../../testing/accounts.ts';
import { type Engines, startEngines } from '../local/engines.ts';
import { ensurePepper } from '../local/pepper-file.ts';
import { type StackLayout, stackLayout } from '../local/stack-layout.ts';
import { migratePostgres } from '../provision.ts';

const run = promisify(execFile);
const opened: { layout: StackLayout; engines: Engines }[] = [];
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-backup-'));
});

afterAll(async () => {
  for (const { engines } of opened) await engines.stop();
  rmSync(folder, { recursive: true, force: true });
});

const cluster = (layout: StackLayout) => path.join(layout.data('postgres'), 'cluster');

async function start(layout: StackLayout): Promise<Engines> {
  const engines = await startEngines({
    layout,
    config: { external: {}, dockerHost: 'unix:///none', javaHome: undefined, namespace: '' },
    names: ['postgres'],
    preferredPorts: { postgres: 0 },
    report: () => undefined,
  });
  opened.push({ layout, engines });
  return engines;
}

/** Connects as the superuser, as the person does who makes the backup. */
async function superuser(layout: StackLayout, { postgresUrl }: Engines): Promise<pg.Client> {
  const url = new URL(postgresUrl);
  url.username = 'postgres';
  url.password = JSON.parse(readFileSync(layout.passwords, 'utf8')).postgres;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  return client;
}

/** A running platform's database, with its keys. */
function openKeys(layout: StackLayout, { postgresUrls }: Engines) {
  const db = openDatabase({ url: postgresUrls.api, namespace: '', name: 'drill', log: silentLog });
  return { db, keys: createKeys({ db, pepper: readPepper(layout.pepper) }) };
}

test('a backup made while PostgreSQL runs restores keys, revocations and the rights of the roles; what follows it is gone', async () => {
  const old = stackLayout(path.join(folder, 'old'));
  mkdirSync(old.folder);
  ensurePepper(old.pepper);
  const engines = await start(old);
  await migratePostgres({ postgresUrl: engines.postgresUrl, namespace: '' });
  const before = openKeys(old, engines);
  const account = await accountOf(old, engines);
  const kept = await create(before.keys, account);
  const revoked = await create(before.keys, account);
  const late = await create(before.keys, account);
  const end = (keyId: string) =>
    before.keys.revoke({ accountId: account, keyId, actor: 'user', address: '127.0.0.1' });
  await end(revoked.record.id);

  // The low-level interface: https://www.postgresql.org/docs/18/continuous-archiving.html
  const client = await superuser(old, engines);
  await client.query("SELECT pg_backup_start('drill', true)");
  const copy = stackLayout(path.join(folder, 'new'));
  mkdirSync(copy.data('postgres'), { recursive: true, mode: 0o700 });
  await run('cp', ['-a', cluster(old), cluster(copy)]);
  const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
  const label = path.join(cluster(copy), 'backup_label');
  writeFileSync(label, rows[0].labelfile);
  await run('chown', ['--reference', cluster(old), label]);
  await run('rm', ['-rf', path.join(cluster(copy), 'pg_wal')]);
  await run('cp', ['-a', path.join(cluster(old), 'pg_wal'), cluster(copy)]);
  await client.end();
  for (const file of ['passwords', 'pepper'] as const)
    await run('cp', ['-a', old[file], copy[file]]);
  await end(late.record.id);
  await before.db.destroy();

  const restored = await start(copy);
  await migratePostgres({ postgresUrl: restored.postgresUrl, namespace: '' });
  const after = openKeys(copy, restored);
  const isLive = async (key: string) => (await after.keys.recognise(account, key)) !== undefined;
  expect(await isLive(kept.key)).toBe(true);
  expect(await isLive(revoked.key)).toBe(false);
  // deploy/runbooks/backup.md tells to revoke it again.
  expect(await isLive(late.key)).toBe(true);
  // Roles and rights are there: the API may write keys, and may not drop tables.
  expect((await create(after.keys, account)).kind).toBe('ok');
  await expect(after.db.schema.dropTable('api_keys').execute()).rejects.toThrow(/owner|denied/);
  await after.db.destroy();
});

async function accountOf(layout: StackLayout, { postgresUrl: url }: Engines): Promise<string> {
  const db = openDatabase({ url, namespace: '', name: 'drill', log: silentLog });
  const engines = { postgresUrl: url, pepperFile: layout.pepper };
  const { id } = await createTestAccount(db, { name: '', engines, env: {} }, { tier: 'pro' });
  await db.destroy();
  return id;
}

async function create(keys: ReturnType<typeof createKeys>, accountId: string) {
  const made = await keys.create({ accountId, actor: 'user', name: 'drill', scopes: ['read'] });
  if (made.kind !== 'ok') throw new Error(made.kind);
  return made;
}
