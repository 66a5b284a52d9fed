import { once } from 'node:events';
import { type AddressInfo, createServer, connect as netConnect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../log.ts';
import type { Database } from '../postgres/database.ts';
import { openTestDatabase } from '../testing/accounts.ts';
import { createMeteredCall, usedCalls, usedCallsByKey } from '../testing/metered-call.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { waitFor } from '../testing/wait.ts';
import type { Meter } from './access.ts';
import { openMeter } from './meter.ts';

/** A line to PostgreSQL that can be cut and frozen. */
interface Line {
  readonly url: string;
  /** Ends every connection and refuses new ones. */
  cut(): void;
  mend(): void;
  /** Holds every byte back, in both directions, until `mend`. */
  freeze(): void;
  /** Holds back what the connections of now send, for good; new ones work. */
  hang(): void;
  close(): Promise<void>;
}

async function openLine(databaseUrl: string): Promise<Line> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isCut = false;
  let isFrozen = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const engine = netConnect(Number(target.port || 5432), target.hostname);
    for (const [from, to] of [
      [client, engine],
      [engine, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => to.write(bytes));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (isFrozen) from.pause();
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend() {
      isCut = false;
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    freeze() {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    hang() {
      for (const socket of sockets) socket.pause();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

let namespace: Namespace;
let db: Database;
let line: Line;
let meter: Meter;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
});
beforeEach(async () => {
  line = await openLine(namespace.engines.postgresUrl);
  meter = openMeter({
    databaseUrl: line.url,
    namespace: namespace.name,
    log: silentLog,
    name: 'outage',
  });
});
afterEach(async () => {
  await meter.close();
  await line.close();
});
afterAll(async () => {
  await db.destroy();
});

test('with PostgreSQL cut off metered calls are refused at once, others go on and are counted later', async () => {
  const metered = await createMeteredCall(db, namespace, 'basic', 50);
  const free = await createMeteredCall(db, namespace, 'institutional');
  expect((await meter.take(metered)).kind).toBe('granted');
  line.cut();
  expect((await meter.take(metered)).kind).toBe('unavailable');
  // Not even a promise: nobody waits for a database that is known to be away.
  for (let i = 0; i < 10; i += 1) {
    expect(meter.take(metered)).toMatchObject({ kind: 'unavailable' });
    expect(meter.take(free)).toMatchObject({ kind: 'granted' });
  }
  line.mend();
  await waitFor('metered calls', async () => (await meter.take(metered)).kind === 'granted');
  await waitFor('the counts', async () => (await usedCalls(db, free.account.id)) === 10);
  await meter.close();
  expect(await usedCallsByKey(db, free.account.id)).toBe(10);
  expect(await usedCalls(db, metered.account.id)).toBe(2);
  expect(await usedCallsByKey(db, metered.account.id)).toBe(2);
});

test('an answer that comes too late is given back, and the calls are counted again', async () => {
  const call = await createMeteredCall(db, namespace, 'basic', 5);
  expect((await meter.take(call)).kind).toBe('granted');
  line.freeze();
  const late = await Promise.all([meter.take(call), meter.take(call)]);
  expect(late.map(({ kind }) => kind)).toEqual(['unavailable', 'unavailable']);
  expect(meter.take(call)).toMatchObject({ kind: 'unavailable' });
  line.mend();
  await waitFor('metered calls', async () => (await meter.take(call)).kind === 'granted');
  for (let i = 0; i < 3; i += 1) expect((await meter.take(call)).kind).toBe('granted');
  expect((await meter.take(call)).kind).toBe('quota_exceeded');
  await meter.close();
  expect(await usedCalls(db, call.account.id)).toBe(5);
  expect(await usedCallsByKey(db, call.account.id)).toBe(5);
});

test('a connection that never answers is replaced', async () => {
  const call = await createMeteredCall(db, namespace, 'basic', 5);
  const free = await createMeteredCall(db, namespace, 'institutional');
  expect((await meter.take(call)).kind).toBe('granted');
  line.hang();
  expect((await meter.take(call)).kind).toBe('unavailable');
  expect(meter.take(free)).toMatchObject({ kind: 'granted' });
  await waitFor('metered calls', async () => (await meter.take(call)).kind === 'granted');
  await meter.close();
  expect(await usedCalls(db, call.account.id)).toBe(2);
  expect(await usedCalls(db, free.account.id)).toBe(1);
});

test('it closes while PostgreSQL is away, and takes nothing afterwards', async () => {
  const call = await createMeteredCall(db, namespace, 'basic', 5);
  const free = await createMeteredCall(db, namespace, 'institutional');
  expect((await meter.take(call)).kind).toBe('granted');
  line.cut();
  meter.take(free);
  await meter.close();
  expect(meter.take(call)).toMatchObject({ kind: 'unavailable' });
});
