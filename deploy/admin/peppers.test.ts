import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parsePeppers, readPepper } from '../../domain/access/pepper.ts';
import { SEALED_COLUMNS } from '../../domain/access/reseal.ts';
import { createSeal } from '../../domain/access/sealing.ts';
import { type AccountApi, openAccountApi } from '../../gateway/api/testing/account-api.ts';
import type { Customer } from '../../gateway/api/testing/customer.ts';
import { startStream } from '../../gateway/stream/testing/start-stream.ts';
import { closeClients, connect } from '../../gateway/stream/testing/stream-client.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { type Database, schemaName } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import { testPepperFile } from '../../testing/engine-addresses.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';

const SECRETS = 6_000;

let folder: string;
let file: string;
let accounts: AccountApi;
let db: Database;
let stream: TestProcess;
let streamUrl: string;
let customer: Customer;

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-peppers-'));
  file = path.join(folder, 'pepper');
  await writeFile(file, await readFile(testPepperFile()), { mode: 0o600 });
  const env = { KEY_PEPPER_FILE: file, WEBHOOK_ALLOW_LOOPBACK: 'true' };
  accounts = await openAccountApi(env);
  db = openTestDatabase(accounts.namespace);
  ({ stream, url: streamUrl } = await startStream({ ...accounts.namespace.env, ...env }));
  customer = await accounts.customer('rotating', 'institutional');
});

afterAll(async () => {
  closeClients();
  await stream?.stop();
  await accounts?.close();
  await db?.destroy();
  await rm(folder, { recursive: true, force: true });
});

function start(...args: readonly string[]) {
  const entry = path.join(packageRoot, 'dist', 'deploy', 'admin', 'main.js');
  const env = { PATH: process.env.PATH, ...accounts.namespace.env, KEY_PEPPER_FILE: file };
  const child = spawn(process.execPath, [entry, '--json', 'pepper', ...args], { env });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended };
}

async function run(...args: readonly string[]) {
  const ended = await start(...args).ended;
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(ended.stdout);
}

async function refusalOf(...args: readonly string[]): Promise<string> {
  const ended = await start(...args).ended;
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  return ended.stderr;
}

async function statusOf(key: string, base = accounts.base): Promise<number> {
  const answer = await request(`${base}/api/account`, { headers: { 'x-api-key': key } });
  await answer.body.dump();
  return answer.statusCode;
}

async function newKey(name: string): Promise<{ key: string; id: string }> {
  const made = await customer.send('POST', '/api/keys', { name, scopes: ['read', 'stream'] });
  expect(made.status).toBe(201);
  return { key: made.body.key, id: made.body.record?.id ?? made.body.id };
}

async function pepperOf(name: string): Promise<number> {
  const rows = db.selectFrom('api_keys').select('pepper').where('name', '=', name);
  return (await rows.executeTakeFirstOrThrow()).pepper;
}

/** Adds many secrets under the current version. @returns their plain bytes by id */
async function addSecrets(endpointId: string, accountId: string): Promise<Map<string, Buffer>> {
  const seal = createSeal(readPepper(file));
  const plain = new Map<string, Buffer>();
  for (let done = 0; done < SECRETS; done += 1_000) {
    const texts = Array.from({ length: 1_000 }, (_, n) => Buffer.from(`secret ${done + n}`));
    const inserted = await db
      .insertInto('webhook_secrets')
      .values(
        texts.map((text) => ({
          endpoint_id: endpointId,
          account_id: accountId,
          sealed: seal.seal(text, endpointId),
          expires_at: new Date(Date.now() - 1_000),
        })),
      )
      .returning('id')
      .execute();
    for (const [n, { id }] of inserted.entries()) plain.set(id, texts[n]!);
  }
  return plain;
}

async function countUnder(version: number): Promise<number> {
  const { rows } = await sql<{ n: string }>`
    SELECT count(*) AS n FROM webhook_secrets WHERE get_byte(sealed, 0) = ${version}`.execute(db);
  return Number(rows[0]!.n);
}

test('every column whose comment says that it is sealed is sealed again by the command', async () => {
  const { rows } = await sql<{ name: string }>`
    SELECT c.relname || '.' || a.attname AS name
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = ${schemaName(accounts.namespace.name)}::regnamespace
      AND a.atttypid = 'bytea'::regtype AND col_description(c.oid, a.attnum) ~ 'sealed|AES'
    ORDER BY 1`.execute(db);
  const listed = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`);
  expect(rows.map(({ name }) => name)).toEqual(listed.sort());
});

test('a rotation under calls and an open socket: nothing is refused, a killed run is continued, an old version goes only when nothing depends on it', async () => {
  const [used, idle] = [await newKey('used'), await newKey('idle')];
  const headers = { 'X-Own': 'a secret header' };
  const settings = { url: 'http://127.0.0.1:9/hook', event_types: ['pill.published'], headers };
  const made = await customer.send('POST', '/api/webhooks', settings);
  expect(made.status).toBe(201);
  const { id: endpointId } = made.body.endpoint;
  const accountId = (await customer.send('GET', '/api/session')).body.account;
  const plain = await addSecrets(endpointId, accountId);
  const original = readPepper(file).all().at(-1)!.bytes;

  const client = await connect(streamUrl, { key: used.key });
  await client.until('welcome');
  const statuses = new Map<number, number>();
  const stopping = new AbortController();
  const calls = (async () => {
    while (!stopping.signal.aborted) {
      const status = await statusOf(used.key).catch(() => 0);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      // Leaves the CPU to the rotation on a small machine.
      await sleep(20);
    }
  })();

  // Accepted at once, used later.
  expect(await run('add', '--active-in', '5s')).toMatchObject({ version: 2, versions: [2, 1] });
  expect(await refusalOf('retire', '1')).toMatch(/in use for new writes|secrets are sealed/);
  await waitFor('version 2 to be active', () => readPepper(file).current().version === 2);
  await newKey('new');
  expect(await pepperOf('new')).toBe(2);
  // Both processes say that they accept the version; one elsewhere has an old copy of the file.
  await waitFor('the records of the processes', async () => {
    const rows = await db.selectFrom('pepper_holders').select(['process', 'versions']).execute();
    const known = rows.map(({ process, versions }) => `${process.split(' ')[0]} ${versions}`);
    return `${known.sort()}` === 'api 2,1,stream 2,1' || `${known}`;
  });
  const behind = { process: 'webhooks elsewhere 7', versions: [1] };
  await db.insertInto('pepper_holders').values(behind).execute();
  const [listed] = await run('list');
  expect(listed).toMatchObject({ version: 2, unknownTo: ['webhooks elsewhere 7'] });
  const lacks = /do not accept version 2 \(webhooks elsewhere 7\): copy .*Nothing has changed/;
  for (const command of [['add'], ['reseal'], ['retire', '1']]) {
    expect(await refusalOf(...command)).toMatch(lacks);
  }
  // A process that has not said anything for longer does not run.
  await sql`UPDATE pepper_holders SET seen_at = now() - interval '2 minutes'
    WHERE process = ${behind.process}`.execute(db);
  await waitFor('the used key to be renewed', async () => (await pepperOf('used')) === 2);
  expect(await pepperOf('idle')).toBe(1);

  // Killed in the middle, then continued.
  const killed = start('reseal');
  await waitFor('the first batches', async () => (await countUnder(2)) > 0);
  killed.child.kill('SIGKILL');
  await killed.ended;
  const before = await countUnder(2);
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(SECRETS);
  expect(await refusalOf('retire', '1')).toMatch(
    new RegExp(`${SECRETS + 2 - before} secrets are sealed with version 1`),
  );
  // One endpoint's headers, and its own secret, are sealed too.
  expect(await run('reseal')).toMatchObject({ version: 2, resealed: SECRETS + 2 - before });
  expect(await run('reseal')).toMatchObject({ resealed: 0 });

  // A key that is not used keeps the old version alive.
  expect(await refusalOf('retire', '1')).toMatch(/1 live API keys are hashed with version 1/);
  await waitFor('the idle key', async () => (await statusOf(idle.key)) === 200);
  await waitFor('the idle key to be renewed', async () => (await pepperOf('idle')) === 2);
  expect(await refusalOf('retire', '1')).toMatch(/Grants signed with version 1 are valid until/);

  // As if version 2 had become active two days ago.
  const lines = (await readFile(file, 'utf8')).split('\n');
  const earlier = new Date(Date.now() - 2 * 86_400_000).toISOString();
  const moved = lines.map((line) => line.replace(/^2 \S+/, `2 ${earlier}`));
  await writeFile(file, moved.join('\n'));
  expect(await run('retire', '1')).toMatchObject({ versions: [2] });
  const kept = parsePeppers(await readFile(file, 'utf8'), file);
  expect(kept.some(({ bytes }) => bytes.equals(original))).toBe(false);

  // A process that never knew version 1 serves everything.
  const fresh = await accounts.start({});
  for (const { key } of [used, idle]) {
    await waitFor('the key', async () => (await statusOf(key, fresh)) === 200);
  }
  const shown = await customer.send('GET', `/api/webhooks/${endpointId}`);
  expect(shown).toMatchObject({ status: 200, body: { header_names: ['X-Own'] } });
  const seal = createSeal(readPepper(file));
  const rows = await db.selectFrom('webhook_secrets').select(['id', 'sealed']).execute();
  const opened = new Map(rows.map(({ id, sealed }) => [id, seal.open(sealed, endpointId)]));
  const spoilt = [...plain].filter(([id, bytes]) => opened.get(id)?.equals(bytes) !== true);
  expect(spoilt).toEqual([]);

  stopping.abort();
  await calls;
  expect([...statuses.keys()]).toEqual([200]);
  client.send({ op: 'ping', t: 7 });
  await client.until('pong');
  const audit = await db
    .selectFrom('audit_log')
    .select(['action', 'target'])
    .where('account_id', 'is', null)
    .orderBy('id')
    .execute();
  expect(audit.map(({ action, target }) => `${action} ${target}`)).toEqual([
    'pepper.added 2',
    'pepper.resealed 2',
    'pepper.retired 1',
  ]);
});
