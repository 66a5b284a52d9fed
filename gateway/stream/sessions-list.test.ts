import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { getPort } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { type EngineProxy, openProxy } from '../../testing/proxy.ts';
import { waitFor } from '../../testing/wait.ts';
import { createCustomer, enroll } from '../api/testing/customer.ts';
import { startStream } from './testing/start-stream.ts';
import { closeClients, connect } from './testing/stream-client.ts';

let namespace: Namespace;
let db: Database;
let proxy: EngineProxy;
let outbox: string;
let base: string;
let urls: string[];
const processes: TestProcess[] = [];

async function start() {
  const started = await startStream({ ...namespace.env, DATABASE_URL: proxy.url });
  processes.push(started.stream);
  return started;
}

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  proxy = await openProxy(namespace.engines.postgresUrl);
  outbox = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  const api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    PUBLIC_URL: base,
    MAIL_OUTBOX: outbox,
  });
  processes.push(api);
  await api.ready();
  urls = (await Promise.all([start(), start()])).map(({ url }) => url);
});

afterEach(closeClients);

afterAll(async () => {
  await Promise.all(processes.map((one) => one.stop()));
  await proxy?.close();
  await db?.destroy();
  await rm(outbox, { recursive: true, force: true });
});

interface Listed {
  readonly count: number;
  readonly data: readonly { readonly session: string; readonly encoding: string }[];
}

async function list(key: string): Promise<Listed> {
  const answer = await fetch(`${base}/api/stream/sessions`, { headers: { 'x-api-key': key } });
  expect(answer.status).toBe(200);
  return answer.json() as Promise<Listed>;
}

const listed = (key: string, count: number) =>
  waitFor(`${count} listed`, async () => {
    const all = await list(key);
    return all.count === count && all;
  });

/** Asks again while the answer is 503, as of a PostgreSQL that is busy with other tests. */
const close = (key: string, session: string) =>
  waitFor('an answer', async () => {
    const headers = { 'x-api-key': key };
    const url = `${base}/api/stream/sessions/${session}`;
    const answer = await fetch(url, { method: 'DELETE', headers });
    await answer.arrayBuffer();
    return answer.status !== 503 && answer.status;
  });

describe('an owner', () => {
  test('sees its own sockets of all processes, oldest first, and no others', async () => {
    const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
    const other = await createTestAccount(db, namespace, { tier: 'pro' });
    await connect(urls[0]!, { key: other.key });
    const first = await connect(urls[0]!, { key });
    const { session } = await first.until('welcome');
    const second = await connect(urls[1]!, { key, protocols: ['pills.v1.avro'] });
    await second.until('welcome');
    const { data } = await listed(key, 2);
    expect(data[0]).toMatchObject({ session, address: '127.0.0.1', queue_ms: 0, encoding: 'json' });
    expect(data[0]).toMatchObject({ key: expect.stringMatching(/^pil_live_…/) });
    expect(data[1]!.encoding).toBe('avro');
    await listed(other.key, 1);
  });

  test('closes one socket; the other stays open', async () => {
    const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
    const going = await connect(urls[1]!, { key });
    const staying = await connect(urls[1]!, { key });
    const { session } = await going.until('welcome');
    await listed(key, 2);
    expect(await close(key, session)).toBe(204);
    expect(await going.until('error')).toMatchObject({ code: 'taken_over', close: 4504 });
    expect(await going.closed).toMatchObject({ code: 4504 });
    const { data } = await listed(key, 1);
    expect(data[0]!.session).toBe((await staying.until('welcome')).session);
    expect(await close(key, session)).toBe(404);
  });

  test('no longer sees a closed socket, nor those of a killed process', async () => {
    const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
    const { stream, url } = await start();
    await (await connect(url, { key })).until('welcome');
    await (await connect(urls[0]!, { key })).until('welcome');
    await listed(key, 2);
    await stream.kill();
    await listed(key, 1);
    closeClients();
    await listed(key, 0);
  });

  test('has one limit across all processes: the newest are closed, the oldest stay', async () => {
    const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
    const clients = [];
    for (let n = 0; n < 19; n += 1) clients.push(await connect(urls[n % 2]!, { key }));
    await listed(key, 19);
    const extra = [await connect(urls[0]!, { key }), await connect(urls[1]!, { key })];
    const gone = await Promise.race(extra.map((client) => client.closed));
    expect(gone.code).toBe(4508);
    await listed(key, 20);
    for (const client of clients)
      expect(client.frames.map(({ type }) => type)).not.toContain('error');
  });

  test('still sees them after an outage of PostgreSQL', async () => {
    const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
    proxy.set('stream-sessions', 'cut');
    try {
      await waitFor('that it is noticed', () =>
        processes.some((one) => one.output().includes('sessions cannot be recorded')),
      );
    } finally {
      proxy.set('stream-sessions', 'open');
    }
    await (await connect(urls[0]!, { key })).until('welcome');
    await listed(key, 1);
  });
});

describe('a browser’s socket', () => {
  test('ends when its user signs out', async () => {
    const alice = createCustomer(base, outbox, 'alice');
    await enroll(db, alice);
    await alice.subscribe('pro');
    // A change of the tier takes effect within a second, not at once.
    const made = await waitFor('the tier to be in force', async () => {
      const answer = await alice.send('POST', '/api/stream/tickets');
      return answer.status === 201 && answer;
    });
    const client = await connect(`${urls[0]}?ticket=${made.body.ticket}`);
    await client.until('welcome');
    const { body } = await waitFor('the socket', async () => {
      const answer = await alice.send('GET', '/api/stream/sessions');
      return answer.body.count === 1 && answer;
    });
    expect(body.data[0].key).toBe('session');
    expect((await alice.send('DELETE', '/api/session')).status).toBe(204);
    expect(await client.until('error')).toMatchObject({ code: 'credential_expired', close: 4004 });
  });
});

test('opening a socket records the use of its key', async () => {
  const { key, keyId } = await createTestAccount(db, namespace, { tier: 'pro' });
  await (await connect(urls[0]!, { key })).until('welcome');
  await waitFor('the last use', async () => {
    const row = await db
      .selectFrom('api_keys')
      .select('last_used_address')
      .where('id', '=', keyId)
      .executeTakeFirstOrThrow();
    return row.last_used_address === '127.0.0.1';
  });
});
