import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createCustomer, PASSWORD, tokenFor } from '../../gateway/api/testing/customer.ts';
import { silentLog } from '../../lib/log.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import { makePill } from '../../lib/testing/pills.ts';
import { createPoster } from '../../lib/testing/poster.ts';
import { pasteReadme, readmeBlocks } from '../../lib/testing/readme.ts';
import {
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../lib/testing/stack.ts';
import { waitFor } from '../../lib/testing/wait.ts';

let folder: string;
let stack: Stack | undefined;

beforeAll(async () => {
  folder = await makeStackFolder();
});

afterAll(async () => {
  await stack?.stop();
  await removeStackFolder(folder);
});

async function latest(key: string): Promise<number> {
  const { statusCode, body } = await request(
    `${stack!.addresses().api}/api/pills/latest?symbol=DEMO.T`,
    { headers: { 'x-api-key': key } },
  );
  await body.dump();
  return statusCode;
}

/** @returns the first frame's type, and the close code if one came */
async function openSocket(key: string): Promise<{ type: string; close: number | undefined }> {
  const socket = new WebSocket(`${stack!.addresses().stream}/api/stream`, {
    headers: { 'x-api-key': key },
  });
  const frames: { type: string }[] = [];
  let close: number | undefined;
  socket.on('message', (bytes) => frames.push(JSON.parse(String(bytes))));
  socket.on('close', (code) => {
    close = code;
  });
  try {
    return await waitFor('a frame', () => {
      const type = frames[0]?.type;
      if (type === undefined || (type === 'error' && close === undefined)) return false;
      return { type, close };
    });
  } finally {
    socket.close();
  }
}

/** Every row of every table, as text. */
async function dumpDatabase(): Promise<string> {
  const url = stack!.addresses().postgres;
  const db = openDatabase({ url, namespace: '', name: 'dump', log: silentLog });
  try {
    const { rows: tables } = await sql<{ tablename: string }>`
      SELECT tablename FROM pg_tables WHERE schemaname = 'pillole'`.execute(db);
    expect(tables.length).toBeGreaterThan(15);
    const dumps = tables.map(async ({ tablename }) => {
      const { rows } = await sql`SELECT t::text FROM ${sql.table(tablename)} t`.execute(db);
      return JSON.stringify(rows);
    });
    return (await Promise.all(dumps)).join('\n');
  } finally {
    await db.destroy();
  }
}

/** Bytes of a text column are text, of a bytea column hex. */
function formsOf(secret: string): string[] {
  return [secret, Buffer.from(secret).toString('hex'), Buffer.from(secret).toString('base64')];
}

const customerEmail = 'carol@example.com';

/** Does what leaves secrets behind. @returns each as it is itself */
async function liveAsCustomer(): Promise<{ secrets: string[]; csrf: string }> {
  const { api, stream } = stack!.addresses();
  const outbox = path.join(folder, 'outbox');
  const carol = createCustomer(api, outbox, 'carol');
  await carol.signUp();
  await carol.subscribe('pro');
  const wrong = 'not the password of anybody';
  expect((await carol.signIn(wrong)).status).toBe(401);
  await carol.send('POST', '/api/password/reset', { email: carol.email });
  const verified = await tokenFor(outbox, carol.email, 'Verify');
  const reset = await tokenFor(outbox, carol.email, 'A new password');
  const unknown = { token: 'u'.repeat(43), password: wrong };
  expect((await carol.send('POST', '/api/password/reset/confirm', unknown)).status).toBe(400);
  const tickets: string[] = [];
  for (let i = 0; i < 2; i += 1) {
    tickets.push((await carol.send('POST', '/api/stream/tickets')).body.ticket);
  }
  const socket = new WebSocket(`${stream}/api/stream?ticket=${tickets[0]}`);
  const opened = await new Promise((resolve) => socket.once('message', (frame) => resolve(frame)));
  expect(JSON.parse(String(opened))).toMatchObject({ type: 'welcome' });
  socket.close();
  const made = await carol.send('POST', '/api/keys', { name: 'desk' });
  const { cookie, 'x-csrf-token': csrf } = carol.credentials();
  const session = cookie!.split('=')[1]!;
  const secrets = [...tickets, verified, reset, session, PASSWORD, wrong, made.body.key];
  return { secrets, csrf: csrf! };
}

test('demo keys work by their tier, the README’s lines work as pasted, keys survive a restart and are stored nowhere', async () => {
  stack = await launchStack(folder);
  const keys = stack.demoKeys();
  const file = path.join(folder, 'demo-keys.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const poster = createPoster(stack.addresses().ingest);
  await poster.post(makePill({ symbol: 'DEMO.T' }));
  await poster.close();
  for (const key of Object.values(keys)) {
    expect(stack.output().split(key)).toHaveLength(2); // shown once
    await waitFor('the pill', async () => (await latest(key)) === 200);
  }
  expect(await openSocket(keys.basic)).toEqual({ type: 'error', close: 4503 });
  expect((await openSocket(keys.pro)).type).toBe('welcome');

  const [tryLines] = readmeBlocks('Try');
  const pasted = pasteReadme(tryLines!.split('# watch the stream')[0]!, stack.addresses(), folder);
  expect(pasted).toContain('{"status":"ok"}');
  expect(pasted).toContain('"symbol":"7203.T"');
  expect(pasted).toContain('"calls_per_day":10000');
  expect(pasted).not.toContain('"code":"key_');
  const [signUpLines] = readmeBlocks('Accounts and keys');
  const ownKey = /pil_live_[0-9A-Za-z_]+/.exec(
    pasteReadme(signUpLines!, stack.addresses(), folder),
  );
  expect(await latest(ownKey![0])).toBe(200);

  const pepper = readFileSync(path.join(folder, 'pepper'), 'utf8').trim();
  const { secrets, csrf } = await liveAsCustomer();
  secrets.push(...Object.values(keys), ownKey![0], pepper);
  const database = await dumpDatabase();
  expect(await stack.stop()).toBe(0);
  const logs = readdirSync(path.join(folder, 'logs')).map((name) =>
    readFileSync(path.join(folder, 'logs', name), 'utf8'),
  );
  expect(logs.join('').length).toBeGreaterThan(1_000);
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(15);
    for (const text of [database, ...logs, stack.output().replace(/demo key .*/g, '')]) {
      for (const form of formsOf(secret)) expect(text).not.toContain(form);
    }
  }
  // Without its session a CSRF token opens nothing: the database may know it.
  for (const text of logs) expect(text).not.toContain(csrf);
  // What is looked through is what was written, and by whom.
  expect(database).toContain(customerEmail);
  expect(statSync(path.join(folder, 'logs')).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(path.join(folder, 'logs'))) {
    expect(statSync(path.join(folder, 'logs', name)).mode & 0o777, name).toBe(0o600);
  }

  stack = await launchStack(folder);
  expect(stack.demoKeys()).toEqual(keys);
  for (const key of Object.values(keys)) expect(stack.output()).not.toContain(key);
  expect(await latest(keys.basic)).toBe(200);
}, 240_000);
