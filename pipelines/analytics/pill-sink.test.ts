import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ClickHouse,
  databaseName,
  openClickHouse,
} from '../../lib/clickhouse/clickhouse-client.ts';
import { silentLog } from '../../lib/log/log.ts';
import { createNamespace } from '../../testing/namespace.ts';
import { makePill } from '../../testing/pills.ts';
import { waitFor } from '../../testing/wait.ts';
import { createPillStore, type PillStore } from './clickhouse-pills.ts';
import { type BufferedRow, rowOf } from './pill-rows.ts';
import { createPillSink, type SinkLimits } from './pill-sink.ts';

let clickhouse: ClickHouse;
let epoch: string;

beforeAll(async () => {
  const namespace = await createNamespace();
  epoch = namespace.settings.epoch;
  const database = databaseName(namespace.name);
  clickhouse = openClickHouse({ url: namespace.engines.clickhouseUrl, database });
});

afterAll(() => clickhouse?.close());

const LIMITS: SinkLimits = { flushIntervalMs: 20, flushRows: 10, rowsMax: 20 };
const signal = new AbortController().signal;

function rowsFrom(symbol: string, first: number, count: number): BufferedRow[] {
  return Array.from({ length: count }, (_, at) => {
    const offset = first + at;
    const pill = makePill({ symbol, timestamp: 1e15 + offset });
    const judged = {
      order: pill.timestamp,
      late: false,
      backfill: false,
      prev: null,
      last: offset,
    };
    const received_at = pill.timestamp;
    return rowOf(epoch, { ...pill, ...judged, received_at, partition: 0, offset });
  });
}

async function offsetsOf(symbol: string): Promise<number[]> {
  const result = await clickhouse.query({
    query: `SELECT toUInt32(offset) AS offset FROM pills FINAL
            WHERE symbol = {symbol:String} ORDER BY offset`,
    query_params: { symbol },
    format: 'JSONEachRow',
  });
  return (await result.json<{ offset: number }>()).map(({ offset }) => offset);
}

/** The real store, whose inserts fail as `fault` specifies, before or after they take effect. */
function faultyStore(fault: (insert: number) => 'before' | 'after' | undefined): PillStore {
  const store = createPillStore(clickhouse, epoch);
  let inserts = 0;
  return {
    ...store,
    async insert(rows) {
      const what = fault(inserts);
      inserts += 1;
      await sleep(30); // long enough that a second one would run beside it
      if (what === 'before') throw new Error('The connection was refused.');
      await store.insert(rows);
      if (what === 'after') throw new Error('The answer was lost.');
    },
  };
}

const sinkOn = (store: PillStore) =>
  createPillSink({
    store,
    log: silentLog,
    limits: LIMITS,
    onInserted: () => undefined,
    onFatal: (error) => {
      throw error;
    },
  });

test.each([
  ['a refused insert', 'before'],
  ['a lost answer', 'after'],
] as const)('%s is sent again: each row once, none missing', async (_, what) => {
  const symbol = `FAULT.${what.toUpperCase()}`;
  const first = what === 'before' ? 1_000 : 2_000;
  const sink = sinkOn(faultyStore((insert) => (insert < 2 ? what : undefined)));
  await sink.add(rowsFrom(symbol, first, 15), signal);
  await sink.add(rowsFrom(symbol, first + 15, 15), signal);
  await waitFor('all rows to be stored', async () => (await offsetsOf(symbol)).length === 30);
  await sink.close(30_000);
  expect(await offsetsOf(symbol)).toEqual(Array.from({ length: 30 }, (_, at) => first + at));
});

test('rows that come while a failing insert is being retried at the stop do not overtake it', async () => {
  const symbol = 'STOP.T';
  const sink = sinkOn(faultyStore((insert) => (insert === 0 ? 'before' : undefined)));
  await sink.add(rowsFrom(symbol, 3_000, 12), signal);
  await sleep(5); // the insert is under way
  const closed = sink.close(30_000);
  await sink.add(rowsFrom(symbol, 3_012, 12), signal); // too late: left to the next owner
  await closed;
  expect(await offsetsOf(symbol)).toEqual(Array.from({ length: 12 }, (_, at) => 3_000 + at));
});

test('a full buffer waits for room, and a revoked partition stops waiting', async () => {
  const sink = sinkOn(faultyStore(() => 'before'));
  const revoked = new AbortController();
  await sink.add(rowsFrom('FULL.T', 4_000, 12), revoked.signal); // under way, again and again
  const waiting = sink.add(rowsFrom('FULL.T', 4_012, 25), revoked.signal);
  let done = false;
  void waiting.then(() => {
    done = true;
  });
  await sleep(50);
  expect(done).toBe(false);
  revoked.abort();
  await waiting;
  await sink.close(50);
});
