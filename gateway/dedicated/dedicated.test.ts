import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { dedicatedUrl } from '../../domain/dedicated/dedicated-url.ts';
import {
  createDedicatedStreams,
  DEDICATED_LIMITS,
  type DedicatedStreams,
} from '../../domain/dedicated/streams.ts';
import { isAlive } from '../../lib/child-process/identity.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase, type TestAccount } from '../../testing/accounts.ts';
import { openFrontProxy } from '../../testing/front-proxy.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import { getPort, getPortRange } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { type EngineProxy, openProxy } from '../../testing/proxy.ts';
import { waitFor } from '../../testing/wait.ts';
import { createCustomer, enroll } from '../api/testing/customer.ts';
import { closeClients, connect, connectOnce, enter } from '../stream/testing/stream-client.ts';
import { has, idsOf, readyPid as pidOf, subscribe } from './testing/reader.ts';

const TEMPLATE = 'ws://127.0.0.1:{port}';

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
  ports = await getPortRange();
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
  // On a busy machine the log may acknowledge late: a repeat has no second effect.
  await waitFor('the log', () => writer.write(pills).then(() => true));
  return pills.map(({ id }) => id);
}

test('a socket created over the API is usable and reports its state, lag and queue', async () => {
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
    await enroll(db, customer);
    await customer.subscribe('pro');
    const refused = await waitFor('the first tier', async () => {
      const { body } = await customer.send('POST', '/api/manager/streams', { label: 'Tokyo' });
      return body.code !== 'subscription_required' && body;
    });
    expect(refused).toMatchObject({ code: 'tier_too_low', needs: 'institutional' });
    await customer.subscribe('institutional');
    const made = await waitFor('the tier', async () => {
      const answer = await customer.send('POST', '/api/manager/streams', { label: 'Tokyo' });
      return answer.status === 201 && answer.body;
    });
    expect(made).toMatchObject({ label: 'Tokyo', state: 'starting', removed_at: null });
    const full = await customer.send('POST', '/api/manager/streams', { label: 'Osaka' });
    expect([full.status, full.body.code, full.headers['retry-after']]).toEqual([
      ...[503, 'overloaded', '60'],
    ]);
    expect(full.body.detail).toMatch(
      /^All 1 dedicated sockets .* Remove .* who sets DEDICATED_MAX\.$/,
    );
    await readyPid(made.name);

    const { key } = (await customer.send('POST', '/api/keys', { name: 'desk' })).body;
    const client = await enter(made.url, { key });
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

test('a socket serves only its own account, under its own name', async () => {
  const owner = await account();
  const stranger = await account();
  const { name, url } = await make(owner);
  await readyPid(name);
  for (const path of ['/api/stream', '/api/stream/dedicated/ded_aaaaaaaaaaaa']) {
    const elsewhere = await connect(new URL(path, url).href, { key: owner.key });
    const error = { code: 'dedicated_unknown', fatal: true, close: 4511 };
    expect(await elsewhere.until('error')).toMatchObject(error);
    expect((await elsewhere.closed).code).toBe(4511);
  }
  const refused = await enter(url, { key: stranger.key });
  expect(await refused.until('error')).toMatchObject({ code: 'key_invalid', close: 4501 });
  expect((await refused.closed).code).toBe(4501);
  const client = await enter(url, { key: owner.key });
  expect(await client.until('welcome')).toMatchObject({ account: owner.id });
});

test('removal closes the connections with the reason and ends the process', async () => {
  const owner = await account();
  const { name, url, request } = await make(owner);
  const pid = await readyPid(name);
  const client = await enter(url, { key: owner.key });
  await subscribe(client);
  await streams.remove(request);
  expect(await client.until('error')).toMatchObject({ code: 'dedicated_removed', fatal: true });
  expect((await client.closed).code).toBe(4511);
  await waitFor('the process to end', () => !isAlive(pid));
  await expect(connectOnce(url, { key: owner.key })).rejects.toThrow('ECONNREFUSED');
  expect(await streams.remove(request)).toBeUndefined();
});

test('after a rotation, the old socket serves beside the new one for the overlap', async () => {
  const owner = await account();
  const { name, url, request } = await make(owner);
  await readyPid(name);
  const old = await enter(url, { key: owner.key });
  await subscribe(old);
  const rotated = await streams.rotate({ ...request, overlapS: 3_600 });
  if (rotated?.kind !== 'ok') throw new Error(rotated?.kind);
  expect(rotated.old).toMatchObject({ name, replacedBy: rotated.stream.name });
  expect((await streams.rotate({ ...request, overlapS: 3_600 }))?.kind).toBe('rotated');
  await readyPid(rotated.stream.name);
  const next = await enter(dedicatedUrl(TEMPLATE, rotated.stream), { key: owner.key });
  await subscribe(next);
  // With the port in the path, host and port stay, and a proxy needs no table.
  const proxied = openFrontProxy('x-forwarded-for', 'path');
  const template = `ws://127.0.0.1:${await proxied.portFor('203.0.113.7')}/{port}`;
  const urls = [rotated.old, rotated.stream].map((stream) => dedicatedUrl(template, stream));
  expect(new Set(urls.map((to) => new URL(to).origin)).size).toBe(1);
  try {
    for (const to of urls) {
      const behind = await enter(to, { key: owner.key });
      expect(await behind.until('welcome')).toMatchObject({ account: owner.id });
    }
  } finally {
    proxied.close();
  }
  const ids = await send(10);
  await Promise.all([has(old, ids), has(next, ids)]);
  // The overlap ends in two seconds: however long the start took, both have served in it.
  await db
    .updateTable('dedicated_streams')
    .set({ expires_at: new Date(Date.now() + 2_000) })
    .where('name', '=', name)
    .execute();
  expect((await old.closed).code).toBe(4511);
  await has(next, await send(10));
});

test('after kill -9 of the process, the same address serves again, and no pill is lost', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const before = await enter(url, { key: owner.key });
  await subscribe(before);
  const ids = await send(50);
  await has(before, ids);
  // An earlier heartbeat has a position before the pills, and a resume would repeat them.
  const { position } = await waitFor('a heartbeat past the pills', async () => {
    const next = await before.until('heartbeat');
    return next.sent === ids.length && next;
  });
  process.kill(pid, 'SIGKILL');
  await before.closed;
  ids.push(...(await send(50)));
  await readyPid(name, pid);
  const after = await enter(url, { key: owner.key });
  await subscribe(after, position);
  ids.push(...(await send(50)));
  await has(after, ids.slice(50));
  const got = [...idsOf(before), ...idsOf(after)];
  expect(got.toSorted()).toEqual(ids.toSorted());
});

test('after kill -9 of the supervisor, the next one takes over on the same ports', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const before = await enter(url, { key: owner.key });
  await subscribe(before);
  await supervisor.kill();
  supervisor = await startSupervisor();
  const next = await readyPid(name, pid);
  expect([isAlive(pid), isAlive(next)]).toEqual([false, true]);
  const after = await enter(url, { key: owner.key });
  await subscribe(after);
  await has(after, await send(5));
  const second = await startProcess('gateway/dedicated/main.js', [], {
    ...namespace.env,
    DEDICATED_RUN_FOLDER: folder,
  });
  expect(await second.exited).toBe(1);
  expect(second.output()).toContain('Another supervisor');
});

test('sockets keep serving without PostgreSQL; requests made meanwhile are applied afterwards', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const client = await enter(url, { key: owner.key });
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

test('an account that loses the tier loses the socket, and regains it with the tier', async () => {
  const owner = await account();
  const { name, url } = await make(owner);
  const pid = await readyPid(name);
  const client = await enter(url, { key: owner.key });
  await subscribe(client);
  const setTier = (tier: 'pro' | 'institutional') =>
    db.updateTable('subscriptions').set({ tier }).where('account_id', '=', owner.id).execute();
  await setTier('pro');
  expect(await client.until('error')).toMatchObject({ code: 'tier_too_low' });
  expect((await client.closed).code).toBe(4503);
  await waitFor('the process to end', () => !isAlive(pid));
  const stopped = await waitFor('the state', async () => {
    const [one] = await streams.list(owner.id);
    return one?.state === 'stopped' && one;
  });
  expect(stopped.reason).toContain('Institutional API is required for dedicated sockets');
  await setTier('institutional');
  await readyPid(name, pid);
});
