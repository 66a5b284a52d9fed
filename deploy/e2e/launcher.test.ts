import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createCustomer, PASSWORD, tokenFor } from '../../gateway/api/testing/customer.ts';
import { closeClients, connect } from '../../gateway/stream/testing/stream-client.ts';
import { silentLog } from '../../lib/log/log.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import { PAGES, pasteLines, shellBlocks } from '../../testing/docs-pages.ts';
import { makePill } from '../../testing/pills.ts';
import { createPoster } from '../../testing/poster.ts';
import {
  isAlive,
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../testing/stack.ts';
import { waitFor } from '../../testing/wait.ts';

/** The runs of one stack: each test continues with the stack that the previous test left. */
let folder: string;
let stack: Stack | undefined;
/** Cursor of the pill of FIRST.T, which must be present after every later start. */
let first: string;

beforeAll(async () => {
  folder = await makeStackFolder();
});

afterAll(async () => {
  closeClients();
  await stack?.stop();
  await removeStackFolder(folder);
});

async function post(to: Stack, symbol: string): Promise<string> {
  const poster = createPoster(to.addresses().ingest);
  try {
    return await poster.post(makePill({ symbol }));
  } finally {
    await poster.close();
  }
}

async function cursorOf(from: Stack, symbol: string): Promise<string | undefined> {
  const { statusCode, body } = await request(
    `${from.addresses().api}/api/pills/latest?symbol=${symbol}`,
    { headers: { 'x-api-key': from.demoKeys().institutional } },
  );
  const answer = (await body.json()) as { data: { cursor: string } };
  return statusCode === 200 ? answer.data.cursor : undefined;
}

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

/** Performs the actions that could leave secrets behind. @returns each secret in plain text */
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
  const reset = await tokenFor(outbox, carol.email, 'Reset your password');
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

/** Mails to another address, before and after the one that a page waits for. */
function leaveOtherMails(): void {
  const outbox = path.join(folder, 'outbox');
  mkdirSync(outbox, { recursive: true, mode: 0o700 });
  const mail = 'To: other@example.com\r\n\r\n{"token":"not of this address"}\r\n';
  for (const name of ['0000-older.eml', '9999-other.eml']) {
    writeFileSync(path.join(outbox, name), mail);
  }
}

/** Waits for a line of output that matches `form`. */
const printed = (what: string, form: RegExp) =>
  waitFor(what, () => {
    const lines = stack!.output().split('\n');
    return lines.findLast((line) => form.test(line)) === undefined ? lines.at(-2)! : true;
  });

test('a fresh start shows a live market and prints its status in plain lines', async () => {
  stack = await launchStack(folder, ['--pills-per-s', '50', '--status-every', '1']);
  await printed(
    'pills',
    /^pills [1-9][\d.]*\/s in, [1-9][\d.]*\/s acknowledged; lag analytics \d+/,
  );
  const { stream } = stack.addresses();
  const client = await connect(`${stream}/api/stream`, { key: stack.demoKeys().pro });
  client.send({ op: 'subscribe', id: '1', symbols: ['*'] });
  await waitFor('symbols', () => {
    const seen = new Set(client.pills().map(({ symbol }) => symbol));
    return seen.size >= 45 || `${seen.size} symbols`;
  });
  await printed('a socket', /; sockets 1 \([1-9].*receive to socket p50 [\d.]+ ms, p99 [\d.]+ ms/);
  closeClients();
}, 1_200_000);

test('a killed process is reported and restarted', async () => {
  process.kill(stack!.pidOf('latest'), 'SIGKILL');
  await printed('the end', /^latest .*SIGKILL.*, restart in [\d.]+ s$/);
  await printed('its return', /^latest is back after [\d.]+ s$/);
});

test('demo keys and the lines of the README and the docs work; a new start after Ctrl-C has the same keys and data; no secret is stored', async () => {
  if (stack === undefined) throw new Error('The first start failed.');
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
  // A busy database may miss the first lookup of a key, which closes the socket with another code.
  await waitFor('the refusal of the plan', async () => {
    const { type, close } = await openSocket(keys.basic);
    return (type === 'error' && close === 4503) || `${type} ${close}`;
  });
  await waitFor('a welcome', async () => {
    const { type, close } = await openSocket(keys.pro);
    return type === 'welcome' || `${type} ${close}`;
  });

  leaveOtherMails();
  const paste = (lines: string) => pasteLines(lines, stack!.addresses(), folder);
  const read = paste(shellBlocks('README.md', 'Read')[0]!);
  expect(read).toContain('{"status":"ok"}');
  expect(read).toContain('"symbol":"7203.T"');
  const pages = PAGES.map((page) => paste(shellBlocks(page).join(''))).join('');
  expect(pages).toContain('"calls_per_day":10000');
  for (const output of [read, pages]) expect(output).not.toContain('"code":"key_');
  const ownKey = /pil_live_[0-9A-Za-z_]+/.exec(pages);
  await waitFor('the new key to be known', async () => (await latest(ownKey![0])) === 200);

  const pepper = readFileSync(path.join(folder, 'pepper'), 'utf8').trim();
  const { secrets, csrf } = await liveAsCustomer();
  secrets.push(...Object.values(keys), ownKey![0], pepper);
  const database = await dumpDatabase();
  first = await post(stack, 'FIRST.T');
  await waitFor('latest', async () => (await cursorOf(stack!, 'FIRST.T')) === first);
  const pids = Object.values(stack.pids());
  expect(await stack.stop()).toBe(0);
  expect(pids.filter(isAlive)).toEqual([]);
  for (const name of ['stack.json', 'lock']) {
    expect(existsSync(path.join(folder, name))).toBe(false);
  }
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
  // A CSRF token is useless without its session, so the database may contain it.
  for (const text of logs) expect(text).not.toContain(csrf);
  // The searched data is the written data, and only its owner can read the logs.
  expect(database).toContain(customerEmail);
  expect(statSync(path.join(folder, 'logs')).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(path.join(folder, 'logs'))) {
    expect(statSync(path.join(folder, 'logs', name)).mode & 0o777, name).toBe(0o600);
  }

  stack = await launchStack(folder);
  expect(stack.demoKeys()).toEqual(keys);
  for (const key of Object.values(keys)) expect(stack.output()).not.toContain(key);
  await waitFor('the key to be known', async () => (await latest(keys.basic)) === 200);
  await waitFor('the data', async () => (await cursorOf(stack!, 'FIRST.T')) === first);
}, 1_200_000);

test('after kill -9 of the launcher, the next start ends the orphans and has the data', async () => {
  stack ??= await launchStack(folder);
  const { processes, ...addresses } = stack.addresses();
  expect(Object.keys(processes)).toEqual([
    'ingest',
    'latest',
    'analytics',
    'api',
    'stream',
    'dedicated',
    'webhooks',
    'destinations',
  ]);
  expect(Object.keys(addresses)).toEqual([
    ...['ingest', 'api', 'stream', 'kafka', 'registry', 'clickhouse', 'postgres'],
  ]);
  for (const { pid, metrics } of Object.values(processes)) {
    expect(isAlive(pid)).toBe(true);
    const { statusCode, body } = await request(metrics);
    expect(statusCode).toBe(200);
    expect(await body.text()).toContain('process_cpu_seconds_total');
  }

  // The page shows the market of the demo account.
  const page = await request(`${addresses.api}/console/settings`);
  expect(await page.body.json()).toEqual({
    stream_url: addresses.stream,
    demo: true,
    has_session: false,
  });

  await expect(launchStack(folder)).rejects.toThrow(/already runs/);

  const second = await post(stack, 'SECOND.T');
  const orphans = Object.values(stack.pids());
  expect(orphans.length).toBe(12);
  stack.launcher.kill('SIGKILL');
  await stack.exited;

  stack = await launchStack(folder);
  expect(orphans.filter(isAlive)).toEqual([]);
  await waitFor('the data', async () => (await cursorOf(stack!, 'FIRST.T')) === first);
  await waitFor('the pill before the kill', async () => {
    return (await cursorOf(stack!, 'SECOND.T')) === second;
  });
  expect(await stack.stop()).toBe(0);
  stack = undefined;
}, 1_200_000);
