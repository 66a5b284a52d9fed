import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { type ClickHouse, openClickHouse } from '../../lib/clickhouse.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { readAll } from '../../lib/kafka/read-all.ts';
import { silentLog } from '../../lib/log.ts';
import { makePill } from '../../lib/testing/pills.ts';
import { createPoster, type Poster } from '../../lib/testing/poster.ts';
import {
  isAlive,
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../lib/testing/stack.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import type { Pill } from '../../schemas/pill.ts';
import { TOPICS } from '../../schemas/topics.ts';

let stack: Stack;
let poster: Poster;
let clickhouse: ClickHouse;

beforeAll(async () => {
  stack = await launchStack(await makeStackFolder());
  const { ingest, clickhouse: url } = stack.addresses();
  poster = createPoster(ingest);
  clickhouse = openClickHouse({ url, database: 'pillole' });
}, 150_000);

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

/** A socket that subscribes, and keeps what each of its connections got. */
function openSocket(subscription: object) {
  const url = `${stack.addresses().stream}/api/stream`;
  /** Pills of each connection that became live, in the order they came. */
  const connections: Frame[][] = [];
  let closed = false;
  let socket: WebSocket;
  let isLive = false;
  const connect = () => {
    const pills: Frame[] = [];
    socket = new WebSocket(url);
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
      if (!closed) setTimeout(connect, 200);
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
  // A duplicate identity would be swallowed by a map: it must not be.
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  return new Map(rows.map(({ id, cursor }) => [id, cursor]));
}

const uniqueSymbols = (count: number) => {
  const run = randomUUID().slice(0, 6).toUpperCase();
  return Array.from({ length: count }, (_, at) => `E2E.${run}.${at}`);
};

describe('the way of a pill', () => {
  test('a posted pill is in latest, in ClickHouse and in a socket', async () => {
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

  test('kill -9 of each process in mid-flow, and of the broker: nothing lost, refused or doubled', async () => {
    const symbols = uniqueSymbols(6);
    const socket = openSocket({ symbols });
    await socket.live();
    const acknowledged = new Map<string, { pill: Pill; cursor: string }>();
    let posting = true;
    const senders = symbols.map(async (symbol) => {
      // One at a time for each symbol, so that the last one acknowledged is the newest.
      while (posting) {
        const pill = makePill({ symbol });
        const cursor = await poster.post(pill);
        acknowledged.set(pill.id, { pill, cursor });
        await sleep(20);
      }
    });
    const flowed = async (count: number) => {
      const before = acknowledged.size;
      await waitFor('pills to flow', () => acknowledged.size >= before + count, 60_000);
    };
    await flowed(50);
    for (const name of ['ingest', 'latest', 'analytics', 'api', 'stream', 'kafka']) {
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
      await waitFor(`latest of ${symbol}`, async () => {
        const found = await latestOf(symbol);
        return found?.id === newest.get(symbol) || `${found?.id} is not ${newest.get(symbol)}`;
      });
    }
    const rows = await waitFor(
      'all rows',
      async () => {
        const found = await rowsOf(symbols);
        return found.size >= acknowledged.size ? found : `${found.size} of ${acknowledged.size}`;
      },
      60_000,
    );
    // Every pill was posted until it was acknowledged, so the table holds those and no others.
    expect([...rows.keys()].sort()).toEqual([...acknowledged.keys()].sort());

    const { kafka } = stack.addresses();
    const client = createKafkaClient(kafka.split(','), 'e2e', silentLog);
    expect(await readAll(client, TOPICS.rejected.name)).toEqual([]);

    // Within each connection nothing is doubled, and prev tells that nothing is missing.
    for (const pills of socket.connections) {
      expect(new Set(pills.map(({ id }) => id)).size).toBe(pills.length);
      const last = new Map<string, string>();
      for (const { symbol, cursor, prev } of pills) {
        const before = last.get(symbol!);
        if (before !== undefined) expect(prev).toBe(before);
        last.set(symbol!, cursor!);
      }
    }
    // The stream was killed once; the sockets outlived the broker.
    expect(socket.connections.length).toBe(2);
    socket.close();
  }, 240_000);
});
