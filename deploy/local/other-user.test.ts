import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { schemaName } from '../../lib/postgres/database.ts';
import { POSTGRES_ROLES, type PostgresRole } from '../../lib/postgres/roles.ts';
import { testEngine, testPepperFile } from '../../testing/engine-addresses.ts';
import { migratePostgres } from '../provision.ts';
import { stackLayout } from './stack-layout.ts';

/** A user of the machine who has nothing to do with the stack; usually called nobody. */
/** No process of another test runs as this user: the image's processes run as 65534. */
const STRANGER = ['--reuid=64999', '--regid=64999', '--clear-groups', '--'] as const;
const isRoot = process.getuid?.() === 0;
/** A server that the environment names has the users of its operator, and may be attacked by none. */
const isOurs = inject('postgresUrls').api !== inject('postgresUrls').migrate;

const namespace = `t${randomUUID().slice(0, 8)}`;
const schema = schemaName(namespace);
const layout = stackLayout(path.dirname(testPepperFile()));
/** A folder in which every user may write: what a successful attack would leave. */
const loot = mkdtempSync(path.join(os.tmpdir(), 'pillole-loot-'));

beforeAll(async () => {
  chmodSync(loot, 0o777);
  await migratePostgres({ postgresUrl: testEngine('postgres'), namespace });
});

afterAll(() => rmSync(loot, { recursive: true, force: true }));

async function query(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url, application_name: 'attack' });
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** What a superuser can do to the files of the machine. */
const ATTACKS = [
  `COPY (SELECT 1) TO PROGRAM 'touch ${loot}/program'`,
  `COPY (SELECT 1) TO '${loot}/copy'`,
  `COPY pg_temp.x FROM '/etc/passwd'`,
  `SELECT lo_export(lo_from_bytea(0, 'x'), '${loot}/large-object')`,
  `SELECT lo_import('/etc/passwd')`,
  `SELECT pg_read_file('pg_hba.conf')`,
  `SELECT pg_ls_dir('.')`,
  'SELECT rolpassword FROM pg_authid',
  "ALTER SYSTEM SET log_statement = 'all'",
  'CREATE ROLE thief SUPERUSER',
  'SET SESSION AUTHORIZATION postgres',
  'CREATE EXTENSION adminpack',
  'CREATE DATABASE thief',
] as const;

describe.skipIf(!isRoot || !isOurs)(
  'another user of the machine (needs root to become that user)',
  () => {
    const asStranger = async (script: string, ...args: string[]) => {
      const command = [
        'setpriv',
        ...STRANGER,
        process.execPath,
        '--input-type=module',
        '-e',
        script,
      ];
      const [first = '', ...rest] = [...command, ...args];
      return (await promisify(execFile)(first, rest, { cwd: '/', timeout: 60_000 })).stdout.trim();
    };

    test('reads and lists nothing of the stack, whose commands show no password', async () => {
      const { folder } = layout;
      const targets = ['', 'data', 'data/postgres/cluster', 'data/clickhouse', 'logs', 'run'].map(
        (name) => path.join(folder, name),
      );
      const files = ['passwords.json', 'pgpass', 'analyst.netrc', 'ports.json', 'pepper'];
      const secrets = Object.values(inject('passwords'));
      const found = await asStranger(
        `import fs from 'node:fs';
      const [, folders, files] = process.argv.map((arg) => arg.split(','));
      const open = [];
      const tries = [...folders.map((one) => [one, fs.readdirSync]), ...files.map((one) => [one, fs.readFileSync])];
      for (const [name, read] of tries) try { read(name); open.push(name); } catch {}
      let commands = '';
      for (const pid of fs.readdirSync('/proc')) for (const name of ['cmdline', 'environ'])
        try { commands += fs.readFileSync('/proc/' + pid + '/' + name, 'utf8'); } catch {}
      console.log(JSON.stringify({ open, commands }));`,
        targets.join(','),
        files.map((name) => path.join(folder, name)).join(','),
      );
      for (const target of targets) expect(existsSync(target), target).toBe(true);
      const { open, commands } = JSON.parse(found) as { open: string[]; commands: string };
      expect(open).toEqual([]);
      expect(commands).toContain('postgres');
      expect(secrets.filter((secret) => commands.includes(secret))).toEqual([]);
    });

    test('has no way into PostgreSQL without a password, nor around it', async () => {
      const { hostname, port } = new URL(testEngine('postgres'));
      const users = ['postgres', 'pillole_migrate', 'pillole_admin', 'nobody'];
      const answers = await asStranger(
        `import { createConnection } from 'node:net';
      const [, host, port, ...users] = process.argv;
      for (const user of users) for (const database of ['postgres', 'pillole', 'template1']) {
        const words = Buffer.from('user\\0' + user + '\\0database\\0' + database + '\\0\\0');
        const head = Buffer.alloc(8);
        head.writeInt32BE(words.length + 8); head.writeInt32BE(196608, 4);
        const socket = createConnection(Number(port), host);
        socket.write(Buffer.concat([head, words]));
        const [bytes] = await new Promise((done) => socket.once('data', (...all) => done(all)));
        // R with 0 = in; R with 10 = SASL wanted; E = an error.
        console.log(bytes[0] === 69 ? 'refused' : 'R' + bytes.readInt32BE(5));
        socket.destroy();
      }`,
        hostname,
        port,
        ...users,
      );
      expect(answers.split('\n')).toHaveLength(users.length * 3);
      expect(new Set(answers.split('\n'))).toEqual(new Set(['R10', 'refused']));
    });

    test('gets no answer, file or function of ClickHouse without a password', async () => {
      const { host } = new URL(testEngine('clickhouse'));
      const statements = [
        'SELECT 1',
        `INSERT INTO FUNCTION file('${loot}/clickhouse', 'TSV', 'a Int8') VALUES (1)`,
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
        "SELECT * FROM executable('id', 'TSV', 'a String')",
      ];
      const answers = await asStranger(
        `const [, host, ...statements] = process.argv;
      for (const body of statements) for (const user of ['', '?user=analyst', '?user=default&password='])
        console.log((await fetch('http://' + host + '/' + user, { method: 'POST', body })).headers
          .get('x-clickhouse-exception-code'));`,
        host,
        ...statements,
      );
      expect(answers.split('\n')).toEqual(
        Array.from({ length: statements.length * 3 }, () => '516'),
      );
      expect(readdirSync(loot)).toEqual([]);
    });
  },
);

describe.skipIf(!isOurs).each(POSTGRES_ROLES)('the role of %s', (role) => {
  const ask = (sql: string) => query(inject('postgresUrls')[role], sql);

  test.each(ATTACKS)('may not %s', async (sql) => {
    await expect(ask(sql)).rejects.toThrow(
      /permission denied|must be superuser|is not available|schema "pg_temp" does not exist|pg_temp\.x/,
    );
    expect(readdirSync(loot)).toEqual([]);
  });

  test('may use the database of the platform alone', async () => {
    const url = new URL(inject('postgresUrls')[role]);
    url.pathname = '/postgres';
    await expect(query(url.href, 'SELECT 1')).rejects.toThrow(/no pg_hba.conf entry/);
  });

  test.skipIf(role === 'migrate')('owns nothing and changes no tables', async () => {
    for (const sql of [
      `CREATE TABLE ${schema}.loot (a int)`,
      'CREATE SCHEMA loot',
      'CREATE TABLE public.loot (a int)',
      'CREATE TEMP TABLE loot (a int)',
      `DROP TABLE ${schema}.audit_log`,
      `TRUNCATE ${schema}.accounts CASCADE`,
      `ALTER TABLE ${schema}.accounts DISABLE TRIGGER ALL`,
      `UPDATE ${schema}.audit_log SET actor = 'x'`,
      `DELETE FROM ${schema}.billing_events`,
      `DELETE FROM ${schema}.kysely_migration`,
      'SET ROLE pillole_migrate',
    ]) {
      await expect(ask(sql), sql).rejects.toThrow(/permission denied|must be owner/);
    }
  });
});

/** Tables that each process may read; api and admin read all. */
const READABLE: Partial<Record<PostgresRole, readonly string[]>> = {
  stream: [
    ...['access_changes', 'accounts', 'api_keys', 'authentication_nonces'],
    ...['authentication_schemes', 'desks', 'latency_hours', 'pepper_holders', 'security_events'],
    ...['stream_processes', 'stream_sessions', 'stream_tickets', 'subscriptions'],
  ],
  webhooks: [
    ...['access_changes', 'account_events', 'accounts', 'api_keys', 'latency_hours'],
    ...['pepper_holders', 'subscriptions', 'webhook_deliveries', 'webhook_endpoints'],
    'webhook_joined',
    ...['webhook_positions', 'webhook_secrets', 'webhook_workers'],
  ],
  destinations: [
    ...['accounts', 'destination_attempts', 'destination_positions', 'destinations'],
    ...['pepper_holders', 'subscriptions'],
  ],
};

test.skipIf(!isOurs).each(Object.entries(READABLE))(
  '%s reads no other table',
  async (role, tables) => {
    const rows = await query(
      testEngine('postgres'),
      `SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'
     AND has_table_privilege('pillole_${role}', schemaname || '.' || tablename, 'SELECT')
     ORDER BY 1`,
    );
    expect(rows).toEqual(tables.map((tablename) => ({ tablename })));
  },
);
