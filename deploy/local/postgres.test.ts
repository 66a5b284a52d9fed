import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { roleName } from '../../lib/postgres/roles.ts';
import { type Engines, startEngines } from './engines.ts';
import { type StackLayout, stackLayout } from './stack-layout.ts';

let layout: StackLayout;
let engines: Engines | undefined;
let said: string[];

beforeEach(() => {
  layout = stackLayout(mkdtempSync(path.join(os.tmpdir(), 'pillole-postgres-')));
  said = [];
});

afterEach(async () => {
  await engines?.stop();
  rmSync(layout.folder, { recursive: true, force: true });
});

async function start(): Promise<Engines> {
  await engines?.stop();
  engines = await startEngines({
    layout,
    config: { external: {}, dockerHost: 'unix:///none', javaHome: undefined, namespace: '' },
    names: ['postgres'],
    preferredPorts: { postgres: 0 },
    report: (line) => said.push(line),
  });
  return engines;
}

async function query(url: string, sql: string) {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const rules = () => path.join(layout.data('postgres'), 'cluster', 'pg_hba.conf');

test('a cluster without passwords gets passwords and owners at the next start, and keeps its data', async () => {
  const { postgresUrl } = await start();
  await query(postgresUrl, 'CREATE SCHEMA pillole; CREATE TABLE pillole.t AS SELECT 1 AS a');
  // As before there were passwords: everything was the superuser's, who needed none.
  writeFileSync(rules(), 'host all all 127.0.0.1/32 trust\n');
  await engines!.stop();
  rmSync(layout.passwords);
  // The start that follows knows no password of this cluster.
  const { postgresUrl: url } = await start();
  expect(await query(url, 'SELECT a FROM pillole.t')).toEqual([{ a: 1 }]);
  expect(new URL(url).password).not.toBe(new URL(postgresUrl).password);
  const open = new URL(url);
  open.username = 'postgres';
  open.password = '';
  await expect(query(open.href, 'SELECT 1')).rejects.toThrow(/password/);
  await expect(query(postgresUrl, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
  expect(readFileSync(rules(), 'utf8')).not.toContain('trust');
  // A table of another owner, as all were before there were roles.
  open.password = JSON.parse(readFileSync(layout.passwords, 'utf8')).postgres;
  await query(open.href, 'CREATE TABLE pillole.old (a int GENERATED ALWAYS AS IDENTITY)');
  await query((await start()).postgresUrl, 'ALTER TABLE pillole.old ADD COLUMN b int');
});

test('password files are for their owner alone, and no password is reported', async () => {
  const { postgresUrls } = await start();
  const { passwords, pgpass, analystNetrc } = layout;
  for (const file of [passwords, pgpass, analystNetrc]) {
    expect(statSync(file).mode & 0o777, file).toBe(0o600);
  }
  const admin = new URL(postgresUrls.admin);
  expect(readFileSync(pgpass, 'utf8')).toBe(`*:*:*:${roleName('admin')}:${admin.password}\n`);
  const secrets = Object.values(JSON.parse(readFileSync(passwords, 'utf8')) as object);
  const log = readFileSync(path.join(layout.logs, 'postgres.log'), 'utf8');
  expect(secrets.filter((secret) => `${said}${log}`.includes(secret))).toEqual([]);
});
