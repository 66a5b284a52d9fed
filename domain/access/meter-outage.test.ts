import { once } from 'node:events';
import { type AddressInfo, createServer, connect as netConnect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { createMeteredCall, usedCalls, usedCallsByKey } from '../../testing/metered-call.ts';
import { waitFor } from '../../testing/wait.ts';
import { type Meter, openMeter } from './meter.ts';

/**
 * A connection to PostgreSQL that can be cut and frozen. Unlike testing/proxy.ts, it also holds back
 * the bytes to the server, so a frozen statement is never executed.
 */
interface Line {
  readonly url: string;
  /** Closes every connection and refuses new ones. */
  cut(): void;
  mend(): void;
  /** Holds back every byte, in both directions, until `mend`. */
  freeze(): void;
  /** Holds back all bytes of the present connections forever; new connections work. */
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

let namespace: DatabaseNamespace;
let db: Database;
let line: Line;
let meter: Meter;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
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
  // On a busy machine the connection may take longer than a call waits for it.
  const first = await createMeteredCall(db, namespace, 'basic', 1);
  await waitFor('the first call', async () => (await meter.take(first)).kind === 'granted');
});
afterEach(async () => {
  await meter.close();
  await line.close();
});
afterAll(async () => {
  await db.destroy();
});

test('with PostgreSQL cut off, metered calls are refused at once; others continue and are counted later', async () => {
  const metered = await createMeteredCall(db, namespace, 'basic', 50);
  const free = await createMeteredCall(db, namespace, 'institutional');
  expect((await meter.take(metered)).kind).toBe('granted');
  line.cut();
  expect((await meter.take(metered)).kind).toBe('unavailable');
  // The refusal is not even a promise: no call waits for a database known to be unavailable.
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

test('calls whose answer comes too late are given back, and later calls count again', async () => {
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

test('a meter can be closed while PostgreSQL is unavailable, and then takes no calls', async () => {
  const call = await createMeteredCall(db, namespace, 'basic', 5);
  const free = await createMeteredCall(db, namespace, 'institutional');
  expect((await meter.take(call)).kind).toBe('granted');
  line.cut();
  meter.take(free);
  await meter.close();
  expect(meter.take(call)).toMatchObject({ kind: 'unavailable' });
});
