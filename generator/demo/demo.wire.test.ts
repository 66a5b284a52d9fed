import { afterAll, expect, it } from 'vitest';
import { createMarkets } from '../../domain/market/quiet/markets.ts';
import { readAll } from '../../lib/kafka/read-all.ts';
import { createDecoder } from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { getPort } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';

const running: TestProcess[] = [];
afterAll(() => Promise.all(running.map((one) => one.stop())));

async function start(entry: string, env: Record<string, string>): Promise<TestProcess> {
  const started = await startProcess(entry, [], env);
  running.push(started);
  return started;
}

async function pills(namespace: Namespace): Promise<PillRecord[]> {
  await namespace.schemas.register('pills');
  const decoder = createDecoder('pill', namespace.schemas.writerSchemas);
  const records = await readAll(namespace.client, topicName(namespace.name, 'pills'));
  return records.flatMap(({ value }) => {
    const decoded = decoder.decode(value);
    return 'ok' in decoded && decoded.ok ? [decoded.value] : [];
  });
}

/** Distinct ids on the topic, in the order in which the demo made them. */
async function numbers(namespace: Namespace): Promise<number[]> {
  const all = await pills(namespace);
  const ids = new Set(all.map(({ id }) => Number(id.split('-').at(-1))));
  return [...ids].sort((a, b) => a - b);
}

it('the demo market survives a kill -9 of ingest without losing a pill', async () => {
  const namespace = await createNamespace();
  const port = String(await getPort());
  const ingestEnv = { ...namespace.env, INGEST_PORT: port };
  const ingest = await start('gateway/ingest/main.js', ingestEnv);
  await ingest.ready();
  const demo = await start('generator/demo/main.js', {
    ...namespace.env,
    INGEST_URL: `http://127.0.0.1:${port}`,
    DEMO_PILLS_PER_S: '100',
  });
  await demo.ready();
  const before = await waitFor('pills', async () => {
    const seen = await numbers(namespace);
    return seen.length >= 50 ? seen.length : `${seen.length} pills`;
  });
  await ingest.kill();
  await waitFor('the demo to report the outage', () => demo.output().includes('retrying'));
  const again = await start('gateway/ingest/main.js', ingestEnv);
  await again.ready();
  const seen = await waitFor('pills after the restart', async () => {
    const now = await numbers(namespace);
    return now.length >= before + 150 ? now : `${now.length} of ${before + 150}`;
  });
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, number) => number));
  expect(await demo.stop()).toBe(0);
});

it('the demo market writes Avro to the log on request, each pill in the state of its venue', async () => {
  const namespace = await createNamespace();
  const demo = await start('generator/demo/main.js', {
    ...namespace.env,
    INGEST_URL: 'http://127.0.0.1:1',
    DEMO_WAY: 'direct',
    DEMO_PILLS_PER_S: '200',
  });
  await demo.ready();
  const seen = await waitFor('pills', async () => {
    const all = await pills(namespace);
    return all.length >= 400 ? all : `${all.length} pills`;
  });
  const markets = createMarkets();
  for (const { source, symbol, timestamp, market_state } of seen) {
    expect(source).toBe('demo');
    expect(market_state, symbol).toBe(markets.of(symbol, timestamp / 1000).state);
  }
  expect(await demo.stop()).toBe(0);
  expect(demo.output()).toMatch(/"acknowledged":\d{3,}.*"msg":"demo market"/);
});
