import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ClickHouse, databaseName, openClickHouse } from '../../lib/clickhouse.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../lib/testing/process.ts';
import { openProxy } from '../../lib/testing/proxy.ts';
import { waitFor } from '../../lib/testing/wait.ts';

let namespace: Namespace;
let writer: PillWriter;
let clickhouse: ClickHouse;
let sinks: TestProcess[];

beforeEach(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  clickhouse = openClickHouse({
    url: namespace.engines.clickhouseUrl,
    database: databaseName(namespace.name),
  });
  sinks = [];
});

afterEach(async () => {
  for (const { child } of sinks) child.kill('SIGCONT');
  await Promise.all(sinks.map((sink) => sink.stop()));
  await writer.close();
  await clickhouse.close();
});

async function startSink(env: Readonly<Record<string, string>> = {}): Promise<TestProcess> {
  const sink = await startProcess('pipelines/main.js', ['analytics'], { ...namespace.env, ...env });
  sinks.push(sink);
  await sink.ready();
  return sink;
}

/** Writes pills of many symbols, so that every partition has some. */
async function write(count: number): Promise<void> {
  await writer.write(
    Array.from({ length: count }, (_, at) => makePill({ symbol: `S${at % 40}.T` })),
  );
}

/** Rows as readers see them, and identities: equal when each is there once. */
async function stored(): Promise<{ rows: number; ids: number }> {
  const result = await clickhouse.query({
    query: 'SELECT count() AS rows, uniqExact(id) AS ids FROM pills_once',
    format: 'JSONEachRow',
  });
  const [row] = await result.json<{ rows: string; ids: string }>();
  return { rows: Number(row!.rows), ids: Number(row!.ids) };
}

test('the answer to an insert is lost, then ClickHouse is away for 20 s: each row once, none missing', async () => {
  const proxy = await openProxy(namespace.engines.clickhouseUrl);
  try {
    await startSink({ CLICKHOUSE_URL: proxy.url });
    await write(1_000);
    await waitFor('the first rows', async () => (await stored()).rows === 1_000);
    await sleep(500); // the answers to that insert, and to what is told after it, are on their way
    // What is sent arrives, what is answered does not: the sink cannot know.
    proxy.set('', 'frozen');
    await write(1_000);
    await waitFor(
      'the rows whose insert is not answered',
      async () => (await stored()).rows === 2_000,
    );
    proxy.set('', 'cut');
    await write(1_000);
    await sleep(20_000);
    expect((await stored()).rows).toBe(2_000);
    proxy.set('', 'open');
    await waitFor('all rows', async () => (await stored()).rows >= 3_000, 60_000);
    await write(500);
    await waitFor('the rows after it', async () => (await stored()).rows >= 3_500);
    expect(await stored()).toEqual({ rows: 3_500, ids: 3_500 });
  } finally {
    proxy.set('', 'open');
    await Promise.all(sinks.map((sink) => sink.stop()));
    await proxy.close();
  }
}, 180_000);

test('two sinks fight over the partitions, one wakes up as a zombie: each row once, none missing', async () => {
  const pair = [await startSink(), await startSink()];
  let written = 0;
  for (const [frozen] of [pair, pair.toReversed()] as const) {
    await write(1_500);
    written += 1_500;
    // It may hold rows, and an insert that is under way.
    frozen!.child.kill('SIGSTOP');
    await write(1_500);
    written += 1_500;
    await waitFor('the other to take over', async () => (await stored()).rows >= written, 90_000);
    frozen!.child.kill('SIGCONT');
    await write(500);
    written += 500;
    await waitFor('all rows', async () => (await stored()).rows >= written, 60_000);
  }
  await waitFor('both to be ready again', async () => {
    await Promise.all(pair.map((sink) => sink.ready()));
    return true;
  });
  expect(await stored()).toEqual({ rows: written, ids: written });
}, 240_000);
