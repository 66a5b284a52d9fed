import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { isAlive } from '../../lib/child-process/identity.ts';
import { dedicatedUrl } from '../../lib/dedicated/address.ts';
import {
  createDedicatedStreams,
  DEDICATED_LIMITS,
  type DedicatedStreams,
} from '../../lib/dedicated/streams.ts';
import type { Database } from '../../lib/postgres/database.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../lib/testing/process.ts';
import { type EngineProxy, openProxy } from '../../lib/testing/proxy.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { createCustomer } from '../api/testing/customer.ts';
import { closeClients, connect } from '../stream/testing/client.ts';
import { has, idsOf, readyPid as pidOf, subscribe } from './testing/reader.ts';

const TEMPLATE = 'ws://127.0.0.1:{port}';

// Whole processes start and end here, several times a test.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let namespace: Namespace;
let folder: string;
let db: Database;
let proxy: EngineProxy;
let writer: PillWriter;
let supervisor: TestProcess;
let ports: { readonly from: number; readonly to: number };
let streams: DedicatedStreams;

beforeAll(async () => {
  namespace = await createNamespace();
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole dedicated-'));
  db = openTestDatabase(namespace);
  proxy = await openProxy(namespace.engines.postgresUrl);
  writer = await openPillWriter(namespace);
  const from = 20_000 + Math.floor(Math.random() * 11_000);
  ports = { from, to: from + 99 };
  streams = createDedicatedStreams(db, ports);
  supervisor = await startSupervisor();
});

afterEach(closeClients);

afterAll(async () => {
  proxy?.set('', 'open');
  await supervisor?.stop();
  await writer?.close();
  await proxy?.close();
  await db?.destroy();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

async function startSupervisor(): Promise<TestProcess> {
  const started = await startProcess('gateway/dedicated/main.js', [], {
    ...namespace.env,
    DATABASE_URL: proxy.url,
    DEDICATED_RUN_FOLDER: folder,
  });
  await started.ready();
  return started;
}

const account = (): Promise<TestAccount> =>
  createTestAccount(db, namespace, { tier: 'institutional' });

async function make({ id: accountId }: TestAccount) {
  const made = await streams.create({ accountId, label: 'desk', actor: 'system' });
  if (made.kind !== 'ok') throw new Error(made.kind);
  const { name } = made.stream;
  return {
    name,
    url: dedicatedUrl(TEMPLATE, made.stream),
    request: { accountId, name, actor: 'system' },
  };
}

const readyPid = (name: string, oldPid = 0): Promise<number> => pidOf(db, name, oldPid);

async function send(count: number): Promise<string[]> {
  const pills = Array.from({ length: count }, (_, i) => makePill({ symbol: `S${i % 7}.T` }));
  // On a busy machine the log may be late to acknowledge: a repeat has no second effect.
  await waitFor('the log', () => writer.write(pills).then(() => true));
  return pills.map(({ id }) => id);
}

test('made over the API it is usable, and tells its state, lag and queue', async () => {
  const outbox = path.join(folder, 'outbox');
  const port = await getPort();
  const base = `http://127.0.0.1:${port}`;
  const api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    ...{ API_PORT: String(port), PUBLIC_URL: base, MAIL_OUTBOX: outbox },
    ...{ DEDICATED_PORTS: `${ports.from}-${ports.to}`, DEDICATED_URL: TEMPLATE },
    DEDICATED_MAX: '1',
  });
  try {
    await api.ready();
    const customer = createCustomer(base, outbox, 'desk');
    await customer.signUp();
    await customer.subscribe('pro');
    const refused = await customer.send('POST', '/api/manager/streams', { label: 'Tokyo' });
    expect(refused.body).toMatchObject({ code: 'tier_too_low', needs: 'institutional' });
    await customer.send('PATCH', '/api/subscription', { tier: 'institutional' });
    const made = await waitFor('the tier', async () => {
      const answer = await customer.send('POST', '/api/manager/streams', { label: 'Tokyo' });
      return answer.status === 201 && answer.body;
    });
    expect(made).toMatchObject({ label: 'Tokyo', state: 'starting', removed_at: null });
    const full = await customer.send('POST', '/api/manager/streams', { label: 'Osaka' });
    expect([full.status, full.body.code, full.headers['retry-after']]).toEqual([
      ...[503, 'overloaded', '60'],
    ]);
    expect(full.body.detail).toMatch(/^All 1 places .* Remove one .* who sets DEDICATED_MAX\.$/);
    await readyPid(made.name);

    const { key } = (await customer.send('POST', '/api/keys', { name: 'desk' })).body;
    const client = await connect(made.url, { key });
    await subscribe(client);
    await has(client, await send(20));
    const list = await waitFor('the figures', async () => {
      const { body } = await customer.send('GET', '/api/manager/streams');
      return body.data[0].connections === 1 && body.data[0].lag_records === 0 && body;
    });
    expect(list).toMatchObject({
      limit: DEDICATED_LIMITS.perAccountMax,
      data: [{ name: made.name, state: 'ready', reason: null, queue_bytes: 0, restarts: 0 }],
    });
    const told = await customer.send('GET', '/api/account', undefined, { 'x-api-key': key });
    expect(told.body.dedicated).toEqual([{ name: made.name, url: made.url, state: 'ready' }]);
    const byKey = createCustomer(base, outbox, 'nobody');
    const minted = await byKey.send(
      'POST',
      '/api/manager/streams',
      { label: 'x' },
      { 'x-api-key': key },
    );
    expect([minted.status, minted.body.code]).toEqual([401, 'session_required']);

    const removed = await customer.send('DELETE', `/api/manager/streams/${made.name}`);
    expect([removed.status, removed.body.state]).toEqual([200, 'stopped']);
    expect(await client.closed).toMatchObject({ code: 4511 });
    const audit = await customer.send('GET', '/api/account/audit');
    const actions = audit.body.data.map((entry: { action: string }) => entry.action);
    expect(actions.slice(0, 1)).toEqual(['dedicated_stream.removed']);
    expect(actions).toContain('dedicated_stream.created');
  } finally {
    await api.stop();
  }
});

test('it serves its own account under its own name, and nothing else', async () => {
  const owner = await account();
  const stranger = await account();
  const { name, url } = await make(owner);
  await readyPid(name);
  for (const path of ['/api/stream', '/api/stream/dedicated/ded_aaaaaaaaaaaa']) {
    await expect(connect(new URL(path, url).href, { key: owner.key })).rejects.toThrow('404');
  }
  const refused = await connect(url, { key: stranger.key });
  expect(await refused.until('error')).toMatchObject({ code: 'key_invalid', close: 4501 });
  expect((await refused.closed).code).toBe(4501);
  const client = await connect(url, { key: owner.key });
  expect(await client.until('welcome')).toMatchObject({ account: owner.id });
});

test('removed: its sockets are told so and closed, its process ends', async () => {
  const owner = await account();
  const { name, url, request } = await make(owner);
  const pid = await readyPid(name);
  const client = await connect(url, { key: owner.key });
  await subscribe(client);
  await streams.remove(request);
  expect(await client.until('error')).toMatchObject({ code: 'dedicated_removed', fatal: true });
  expect((await client.closed).code).toBe(4511);
  await waitFor('its end', () => !isAlive(pid));
  await expect(connect(url, { key: owner.key })).rejects.toThrow('ECONNREFUSED');
  expect(await streams.remove(request)).toBeUndefined();
});

test('rotated: the next one serves while the old one goes on for the overlap', async () => {
  const owner = await account();
  const { name, url, request } = await make(owner);
  await readyPid(name);
  const old = await connect(url, { key: owner.key });
  await subscribe(old);
  const rotated = await streams.rotate({ ...request, overlapS: 8 });
  if (rotated?.kind !== 'ok') throw new Error(rotated?.kind);
  expect(rotated.old).toMatchObject({ name, replacedBy: rotated.stream.name });
  expect((await streams.rotate({ ...request, overlapS: 8 }))?.kind).toBe('rotated');
  await readyPid(rotated.stream.name);
  const next = await connect(dedicatedUrl(TEMPLATE, rotated.stream), { key: owner.key });
  await subscribe(next);
  const ids = await send(10);
  await Promise.all([has(old, ids), has(next, ids)]);
  expect((await old.closed).code).toBe(4511);
  await has(next, await send(10));
});

test('kill -9 of its process: the same address again, and nothing is lost', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const before = await connect(url, { key: owner.key });
  await subscribe(before);
  const ids = await send(50);
  await has(before, ids);
  const { position } = await before.until('heartbeat');
  process.kill(pid, 'SIGKILL');
  await before.closed;
  ids.push(...(await send(50)));
  await readyPid(name, pid);
  const after = await connect(url, { key: owner.key });
  await subscribe(after, position);
  ids.push(...(await send(50)));
  await has(after, ids.slice(50));
  const got = [...idsOf(before), ...idsOf(after)];
  expect(got.toSorted()).toEqual(ids.toSorted());
});

test('kill -9 of the supervisor: the next one takes over, on the same ports', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const before = await connect(url, { key: owner.key });
  await subscribe(before);
  await supervisor.kill();
  supervisor = await startSupervisor();
  const next = await readyPid(name, pid);
  expect([isAlive(pid), isAlive(next)]).toEqual([false, true]);
  const after = await connect(url, { key: owner.key });
  await subscribe(after);
  await has(after, await send(5));
  const second = await startProcess('gateway/dedicated/main.js', [], {
    ...namespace.env,
    DEDICATED_RUN_FOLDER: folder,
  });
  expect(await second.exited).toBe(1);
  expect(second.output()).toContain('Another supervisor');
});

test('without PostgreSQL all goes on; what was asked for meanwhile is done after it', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const client = await connect(url, { key: owner.key });
  await subscribe(client);
  proxy.set('pillole-dedicated', 'cut');
  const other = await make(owner);
  await waitFor('the outage', () => supervisor.output().includes('the table cannot be read'));
  await has(client, await send(20));
  expect(isAlive(pid)).toBe(true);
  proxy.set('pillole-dedicated', 'open');
  await readyPid(other.name);
  expect(isAlive(pid)).toBe(true);
});

test('an account that loses the tier loses the socket; with the tier it comes back', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const client = await connect(url, { key: owner.key });
  await subscribe(client);
  const setTier = (tier: 'pro' | 'institutional') =>
    db.updateTable('subscriptions').set({ tier }).where('account_id', '=', owner.id).execute();
  await setTier('pro');
  expect(await client.until('error')).toMatchObject({ code: 'tier_too_low' });
  expect((await client.closed).code).toBe(4503);
  await waitFor('its end', () => !isAlive(pid));
  const stopped = await waitFor('the state', async () => {
    const [one] = await streams.list(owner.id);
    return one?.state === 'stopped' && one;
  });
  expect(stopped.reason).toContain('Institutional API has dedicated sockets');
  await setTier('institutional');
  await readyPid(name, pid);
});
