import { setTimeout as sleep } from 'node:timers/promises';
import { expect, type TestContext, test } from 'vitest';
import { databaseName, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import { testEngine } from '../../testing/engine-addresses.ts';
import { createNamespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter } from '../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { openProxy } from '../../testing/proxy.ts';
import { waitFor } from '../../testing/wait.ts';

/** Engines and sinks of a test's own: the tests mostly wait, so they run at the same time. */
async function openFixture({ onTestFinished }: TestContext) {
  const namespace = await createNamespace();
  const writer = await openPillWriter(namespace);
  const clickhouse = openClickHouse({
    url: namespace.engines.clickhouseUrl,
    database: databaseName(namespace.name),
  });
  const sinks: TestProcess[] = [];
  onTestFinished(async () => {
    for (const { child } of sinks) child.kill('SIGCONT');
    await Promise.all(sinks.map((sink) => sink.stop()));
    await writer.close();
    await clickhouse.close();
  });
  return {
    async startSink(env: Readonly<Record<string, string>> = {}): Promise<TestProcess> {
      const own = { ...namespace.env, ...env };
      const sink = await startProcess('pipelines/main.js', ['analytics'], own);
      sinks.push(sink);
      await sink.ready();
      return sink;
    },
    /** Writes pills of many symbols, so that every partition has some. */
    async write(count: number): Promise<void> {
      await writer.write(
        Array.from({ length: count }, (_, at) => makePill({ symbol: `S${at % 40}.T` })),
      );
    },
    /** Rows as readers see them, and identities: equal when each row is there once. */
    async stored(): Promise<{ rows: number; ids: number }> {
      const result = await clickhouse.query({
        query: 'SELECT count() AS rows, uniqExact(id) AS ids FROM pills_once',
        format: 'JSONEachRow',
      });
      const [row] = await result.json<{ rows: string; ids: string }>();
      return { rows: Number(row!.rows), ids: Number(row!.ids) };
    },
  };
}

test.concurrent('after a lost answer and 20 s without ClickHouse, each row is stored exactly once', async (context) => {
  const proxy = await openProxy(testEngine('clickhouse'));
  // Registered first, so that it closes last, after the sinks.
  context.onTestFinished(() => proxy.close());
  const { startSink, write, stored } = await openFixture(context);
  try {
    const sink = await startSink({ CLICKHOUSE_URL: proxy.url });
    await write(1_000);
    await waitFor('the first rows', async () => (await stored()).rows === 1_000);
    await waitFor('the insert to be answered', async () => {
      const metrics = await (await fetch(`${sink.opsUrl}/metrics`)).text();
      return /^pillole_analytics_rows_total 1000$/m.test(metrics);
    });
    await sleep(500); // the answer to its progress is on its way
    // Requests arrive, answers do not: the sink cannot know the outcome.
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
    await waitFor('all rows to be stored', async () => (await stored()).rows >= 3_000);
    await write(500);
    await waitFor('the rows after the outage', async () => (await stored()).rows >= 3_500);
    expect(await stored()).toEqual({ rows: 3_500, ids: 3_500 });
  } finally {
    proxy.set('', 'open');
  }
});

test.concurrent('with two sinks, one of them a thawed zombie, each row is stored exactly once', async (context) => {
  const { startSink, write, stored } = await openFixture(context);
  const pair = [await startSink(), await startSink()];
  let written = 0;
  for (const [frozen] of [pair, pair.toReversed()] as const) {
    await write(1_500);
    written += 1_500;
    // The sink may hold rows, and an insert in flight.
    frozen!.child.kill('SIGSTOP');
    await write(1_500);
    written += 1_500;
    await waitFor(
      'the other sink to take over',
      async () => (await stored()).rows >= written,
      240_000,
    );
    frozen!.child.kill('SIGCONT');
    await write(500);
    written += 500;
    await waitFor('all rows to be stored', async () => (await stored()).rows >= written, 240_000);
  }
  await waitFor('both sinks to be ready again', async () => {
    await Promise.all(pair.map((sink) => sink.ready()));
    return true;
  });
  expect(await stored()).toEqual({ rows: written, ids: written });
}, 1_200_000);
