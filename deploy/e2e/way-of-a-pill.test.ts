import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import WebSocket from 'ws';
import { type ClickHouse, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { createKafkaClient } from '../../lib/kafka/kafka-client.ts';
import { readAll } from '../../lib/kafka/read-all.ts';
import { silentLog } from '../../lib/log/log.ts';
import type { Pill } from '../../schemas/pill.ts';
import { pillJson } from '../../schemas/public-pill.ts';
import { TOPICS } from '../../schemas/topic-catalogue.ts';
import { makePill } from '../../testing/pills.ts';
import { createPoster, type Poster } from '../../testing/poster.ts';
import { isLongRun } from '../../testing/run-length.ts';
import {
  isAlive,
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../testing/stack.ts';
import { waitFor } from '../../testing/wait.ts';
import { outliveOutageOfTheLog } from './testing/outage-of-the-log.ts';

/** A killed broker is back after 6 s alone, and after over a minute beside a whole test run. */
const RESTART_MS = 180_000;
/** What a failed test shows of the launcher's output. */
const OUTPUT_CHARS = 10_000;

let stack: Stack;
let poster: Poster;
let clickhouse: ClickHouse;

beforeAll(async () => {
  stack = await launchStack(await makeStackFolder());
  const { ingest, clickhouse: url } = stack.addresses();
  poster = createPoster(ingest, RESTART_MS);
  clickhouse = openClickHouse({ url, database: 'pillole' });
}, 900_000);

afterAll(async () => {
  await clickhouse?.close();
  await poster?.close();
  await stack?.stop();
  if (stack !== undefined) await removeStackFolder(stack.folder);
});

interface Frame {
  readonly type: string;
  readonly cursor?: string;
  readonly prev?: string | null;
  readonly id?: string;
  readonly symbol?: string;
  readonly backfill?: true;
  readonly pills?: readonly Frame[];
}

/** A socket that subscribes, reconnects, and collects the pills of each connection. */
function openSocket(subscription: object) {
  const url = `${stack.addresses().stream}/api/stream`;
  /** Pills of each connection that became live, in order of arrival. */
  const connections: Frame[][] = [];
  let closed = false;
  let socket: WebSocket;
  let isLive = false;
  const connect = () => {
    const pills: Frame[] = [];
    socket = new WebSocket(url, { headers: { 'x-api-key': stack.demoKeys().institutional } });
    socket.on('open', () =>
      socket.send(JSON.stringify({ op: 'subscribe', id: '1', ...subscription })),
    );
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data)) as Frame;
      if (frame.type === 'live') {
        isLive = true;
        connections.push(pills);
      }
      if (frame.type === 'pill') pills.push(frame);
      if (frame.type === 'pills') pills.push(...(frame.pills ?? []));
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      isLive = false;
      setTimeout(() => closed || connect(), 200);
    });
  };
  connect();
  return {
    connections,
    live: () => waitFor('the socket to be live', () => isLive),
    close() {
      closed = true;
      socket.terminate();
    },
  };
}

async function latestOf(symbol: string): Promise<{ id: string; cursor: string } | undefined> {
  const { statusCode, body } = await request(
    `${stack.addresses().api}/api/pills/latest?symbol=${encodeURIComponent(symbol)}`,
    { headers: { 'x-api-key': stack.demoKeys().institutional } },
  );
  const answer = (await body.json()) as { data: { id: string; cursor: string } };
  return statusCode === 200 ? answer.data : undefined;
}

async function rowsOf(symbols: readonly string[]): Promise<Map<string, string>> {
  const result = await clickhouse.query({
    query: `SELECT id, concat(toString(partition), '-', toString(offset)) AS cursor
            FROM pills FINAL WHERE symbol IN ({symbols:Array(String)})`,
    query_params: { symbols },
    format: 'JSONEachRow',
  });
  const rows = await result.json<{ id: string; cursor: string }>();
  // The map below would hide duplicate ids.
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  return new Map(rows.map(({ id, cursor }) => [id, cursor]));
}

const uniqueSymbols = (count: number) => {
  const run = randomUUID().slice(0, 6).toUpperCase();
  return Array.from({ length: count }, (_, at) => `E2E.${run}.${at}`);
};

/** Writes a file of old quotes, 100 ms apart, as replay reads them. @returns its path */
async function writeQuotes(count: number): Promise<string> {
  const start = Date.UTC(2019, 0, 1, 23);
  const rows = Array.from({ length: count }, (_, at) => {
    const bid = 109 + ((at * 7919) % 1_000) / 1_000;
    return `${new Date(start + at * 100).toISOString()},${bid.toFixed(3)},${(bid + 0.011).toFixed(3)}`;
  });
  const file = path.join(stack.folder, `usdjpy-${count}.csv`);
  await writeFile(file, ['timestamp,bid,ask', ...rows, ''].join('\n'));
  return file;
}

describe('the way of a pill', () => {
  test('10,000 replayed quotes are all in ClickHouse, the last one is the latest, and only sockets that ask for backfill get them', async () => {
    const count = 10_000;
    const asked = openSocket({ symbols: ['USD/JPY'], backfill: true });
    const other = openSocket({ symbols: ['USD/JPY'] });
    await Promise.all([asked.live(), other.live()]);
    const file = await writeQuotes(count);
    const args = [
      '--time',
      'own',
      '--pace',
      'fast',
      '--stack',
      path.join(stack.folder, 'stack.json'),
    ];
    const replay = path.join(packageRoot, 'dist/generator/replay/main.js');
    await promisify(execFile)(process.execPath, [replay, file, ...args]);

    const lastId = `usdjpy-${count}-${count + 1}`; // the number of its line
    await waitFor('latest', async () => (await latestOf('USD/JPY'))?.id === lastId);
    await waitFor('ClickHouse', async () => (await rowsOf(['USD/JPY'])).size === count);
    await waitFor('the socket', () => asked.connections[0]!.length >= count);
    const ids = Array.from({ length: count }, (_, at) => `usdjpy-${count}-${at + 2}`);
    expect(asked.connections.map((pills) => pills.map(({ id }) => id))).toEqual([ids]);
    expect(asked.connections[0]!.every(({ backfill, prev }) => backfill && prev === null)).toBe(
      true,
    );
    // The later live pill shows that the other socket was skipped, not late.
    const live = await poster.post(makePill({ symbol: 'USD/JPY' }));
    await waitFor('the live pill', () => other.connections[0]!.length > 0);
    expect(other.connections.map((pills) => pills.map(({ cursor }) => cursor))).toEqual([[live]]);
    asked.close();
    other.close();
  });

  test('a posted pill reaches the latest view, ClickHouse and a socket', async () => {
    const [symbol] = uniqueSymbols(1);
    const socket = openSocket({ symbols: [symbol] });
    await socket.live();
    const pill = makePill({ symbol: symbol! });
    const cursor = await poster.post(pill);
    await waitFor('the socket', () => socket.connections[0]!.length > 0);
    expect(socket.connections[0]).toEqual([
      expect.objectContaining({
        cursor,
        prev: null,
        id: pill.id,
        symbol,
        gross_spread_percent: 0.125,
      }),
    ]);
    await waitFor('latest', async () => (await latestOf(symbol!))?.cursor === cursor);
    await waitFor('ClickHouse', async () => (await rowsOf([symbol!])).get(pill.id) === cursor);
    socket.close();
  });

  test('during an outage of the log a post is answered with 503 and stored unknown, and its retry has one effect', async () => {
    const [symbol] = uniqueSymbols(1);
    await poster.post(makePill({ symbol: symbol! }));
    const pill = makePill({ symbol: symbol! });
    const broker = stack.pidOf('kafka');
    process.kill(broker, 'SIGSTOP');
    try {
      const { statusCode, headers, body } = await request(
        `${stack.addresses().ingest}/api/pillole`,
        { method: 'POST', headers: { 'content-type': 'application/json' }, body: pillJson(pill) },
      );
      expect(statusCode).toBe(503);
      expect(headers['retry-after']).toBe('1');
      expect(await body.json()).toMatchObject({
        code: 'log_unavailable',
        stored: 'unknown',
        retry: 'same_id',
        retry_after_s: 1,
      });
    } finally {
      process.kill(broker, 'SIGCONT');
    }
    // The frozen broker may have stored the first pill after all; the retry is then a repeat.
    await poster.post(pill);
    await waitFor('latest', async () => (await latestOf(symbol!))?.id === pill.id);
    await waitFor('ClickHouse', async () => (await rowsOf([symbol!])).size === 2);
  });

  test(
    'while the log is unavailable for 30 s, sockets stay open and report it; then they catch up in order',
    () => outliveOutageOfTheLog(stack, poster),
    600_000,
  );

  test('ingest replaces a connection to the log that hangs and is then refused, without a restart', async () => {
    const [symbol] = uniqueSymbols(1);
    await poster.post(makePill({ symbol: symbol! }));
    const [broker, ingest] = [stack.pidOf('kafka'), stack.pidOf('ingest')];
    // A request is in flight when the process freezes (a paused machine); when it wakes, the request
    // has exceeded its time limit and the broker is gone.
    process.kill(broker, 'SIGSTOP');
    const hung = poster.post(makePill({ symbol: symbol! }));
    await sleep(300);
    process.kill(ingest, 'SIGSTOP');
    await sleep(4_300);
    process.kill(broker, 'SIGKILL');
    process.kill(ingest, 'SIGCONT');
    await hung;
    expect(stack.pidOf('ingest')).toBe(ingest);
    const cursor = await poster.post(makePill({ symbol: symbol! }));
    await waitFor('latest', async () => (await latestOf(symbol!))?.cursor === cursor);
  });

  test('after kill -9 of each process and engine under load, no pill is lost, rejected or duplicated', async () => {
    onTestFailed(() => console.error(stack.output().slice(-OUTPUT_CHARS)));
    const symbols = uniqueSymbols(6);
    const socket = openSocket({ symbols });
    await socket.live();
    const acknowledged = new Map<string, { pill: Pill; cursor: string }>();
    let posting = true;
    const senders = symbols.map(async (symbol) => {
      // One pill at a time for each symbol, so that the last acknowledged one is the newest.
      while (posting) {
        const pill = makePill({ symbol });
        const cursor = await poster.post(pill);
        acknowledged.set(pill.id, { pill, cursor });
        await sleep(20);
      }
    });
    const flowed = async (count: number) => {
      const before = acknowledged.size;
      await waitFor('pills to flow', () => acknowledged.size >= before + count, RESTART_MS);
    };
    await flowed(50);
    const processes = ['ingest', 'latest', 'analytics', 'api', 'stream'];
    const all = [...processes, 'clickhouse', 'registry', 'kafka'];
    const rounds = isLongRun ? 5 : 1;
    for (const name of Array.from({ length: rounds }, () => all).flat()) {
      const pid = stack.pidOf(name);
      process.kill(pid, 'SIGKILL');
      await waitFor(`${name} to be another process`, () => {
        const now = stack.pidOf(name);
        return now !== pid && isAlive(now);
      });
      await flowed(50);
    }
    posting = false;
    await Promise.all(senders);

    const newest = new Map([...acknowledged.values()].map(({ pill }) => [pill.symbol, pill.id]));
    for (const symbol of symbols) {
      await waitFor(
        `latest of ${symbol}`,
        async () => {
          const found = await latestOf(symbol);
          return found?.id === newest.get(symbol) || `${found?.id} is not ${newest.get(symbol)}`;
        },
        RESTART_MS,
      );
    }
    const rows = await waitFor(
      'all rows',
      async () => {
        const found = await rowsOf(symbols);
        return found.size >= acknowledged.size ? found : `${found.size} of ${acknowledged.size}`;
      },
      RESTART_MS,
    );
    // Every pill was posted until it was acknowledged, so the table holds exactly these.
    expect([...rows.keys()].sort()).toEqual([...acknowledged.keys()].sort());

    const { kafka } = stack.addresses();
    const client = createKafkaClient({ brokers: kafka.split(',') }, 'e2e', silentLog);
    expect(await readAll(client, TOPICS.rejected.name, RESTART_MS)).toEqual([]);

    // Within each connection no pill is duplicated, and `prev` shows that no pill is missing.
    for (const pills of socket.connections) {
      expect(new Set(pills.map(({ id }) => id)).size).toBe(pills.length);
      const last = new Map<string, string>();
      for (const { symbol, cursor, prev } of pills) {
        const before = last.get(symbol!);
        if (before !== undefined) expect(prev).toBe(before);
        last.set(symbol!, cursor!);
      }
    }
    // The stream was killed once a round; the sockets survived the kill of the broker.
    await waitFor('the socket to be back', () => socket.connections.length > rounds);
    expect(socket.connections.length).toBe(1 + rounds);
    socket.close();
  }, 1_200_000);
});
