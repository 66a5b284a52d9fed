import { setTimeout as sleep } from 'node:timers/promises';
import getPort from 'get-port';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClickHouse, databaseName, openClickHouse } from '../../lib/clickhouse.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../lib/testing/accounts.ts';
import { type Balancer, openBalancer } from '../../lib/testing/balancer.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';
import { makePill } from '../../lib/testing/pills.ts';
import { createPoster } from '../../lib/testing/poster.ts';
import { startProcess, type TestProcess } from '../../lib/testing/process.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { createClient } from '../../sdk/index.ts';

const KINDS = {
  ingest: { entry: 'gateway/ingest/main.js', args: [], portName: 'INGEST_PORT' },
  latest: { entry: 'pipelines/main.js', args: ['latest'], portName: undefined },
  analytics: { entry: 'pipelines/main.js', args: ['analytics'], portName: undefined },
  api: { entry: 'gateway/api/main.js', args: [], portName: 'API_PORT' },
  stream: { entry: 'gateway/stream/main.js', args: [], portName: 'STREAM_PORT' },
} as const;
type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];

const SYMBOLS = Array.from({ length: 40 }, (_, n) => `S${n}.T`);
const POSTERS = 8;
const PAUSE_MS = 20;
const CLIENTS = 6;

let namespace: Namespace;
let db: Database;
let clickhouse: ClickHouse;
let key: string;
const balancers = new Map<Kind, Balancer>();
const instances = new Map<Kind, TestProcess[]>(NAMES.map((kind) => [kind, []]));
const ports = new Map<TestProcess, number>();

beforeAll(async () => {
  namespace = await createNamespace({ partitions: 8 });
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'pro' }));
  clickhouse = openClickHouse({
    url: namespace.engines.clickhouseUrl,
    database: databaseName(namespace.name),
  });
  for (const kind of ['ingest', 'api', 'stream'] as const) {
    balancers.set(kind, await openBalancer());
  }
  // One after the other: ten at once would take a small machine longer than each may take.
  for (const kind of [...NAMES, ...NAMES]) await start(kind);
}, 180_000);

afterAll(async () => {
  for (const balancer of balancers.values()) balancer.close();
  await Promise.all([...instances.values()].flat().map((one) => one.stop()));
  await clickhouse?.close();
  await db?.destroy();
});

async function start(kind: Kind): Promise<void> {
  const { entry, args, portName } = KINDS[kind];
  const port = await getPort();
  const env = portName === undefined ? {} : { [portName]: String(port) };
  const one = await startProcess(entry, args, { ...namespace.env, ...env });
  instances.get(kind)!.push(one);
  await one.ready();
  if (portName !== undefined) ports.set(one, port);
  balance(kind);
}

function balance(kind: Kind): void {
  const known = instances.get(kind)!.flatMap((one) => ports.get(one) ?? []);
  balancers.get(kind)?.use(known);
}

/** A counter of one process, all labels together. */
async function count(one: TestProcess, name: string): Promise<number> {
  const { body } = await request(`${one.opsUrl}/metrics.json`);
  const metrics = (await body.json()) as { name: string; values: { value: number }[] }[];
  const values = metrics.find((metric) => metric.name === name)?.values ?? [];
  return values.reduce((sum, { value }) => sum + value, 0);
}

/** What tells that a process works. */
const COUNTERS = {
  ingest: 'pillole_ingest_pills_total',
  latest: 'pillole_latest_records_total',
  analytics: 'pillole_analytics_rows_total',
  stream: 'pillole_stream_deliveries_total',
} as const;

/** Posts pills through the balancer until it is told to stop. */
function keepPosting() {
  const poster = createPoster(`http://127.0.0.1:${balancers.get('ingest')!.port}`);
  /** Symbols by id, in the order in which each symbol's pills were sent: a symbol has one lane. */
  const acknowledged = new Map<string, string>();
  let isPosting = true;
  const posting = Array.from({ length: POSTERS }, async (_, lane) => {
    for (let n = 0; isPosting; n += 1) {
      const pill = makePill({ symbol: SYMBOLS[(n * POSTERS + lane) % SYMBOLS.length]! });
      await poster.post(pill);
      acknowledged.set(pill.id, pill.symbol);
      await sleep(PAUSE_MS);
    }
  });
  return {
    acknowledged,
    async stop() {
      isPosting = false;
      await Promise.all(posting);
      await poster.close();
    },
  };
}

function follow() {
  const stream = createClient({
    apiUrl: `http://127.0.0.1:${balancers.get('api')!.port}`,
    streamUrl: `ws://127.0.0.1:${balancers.get('stream')!.port}`,
    key,
  }).stream({ symbols: '*', snapshot: false, fillGaps: false });
  const ids: string[] = [];
  let isLive = false;
  stream.on('pill', ({ id }) => ids.push(id));
  stream.on('open', () => {
    isLive = true;
  });
  return { stream, ids, isLive: () => isLive };
}

test('two of each share the work; one of each is killed, and nothing is lost or doubled', async () => {
  const clients = Array.from({ length: CLIENTS }, follow);
  await waitFor('all to be live', () => clients.every((client) => client.isLive()));
  const posts = keepPosting();
  const { acknowledged } = posts;
  for (const api of instances.get('api')!) {
    const { statusCode } = await request(`http://127.0.0.1:${ports.get(api)}/api/status`);
    expect(statusCode).toBe(200);
  }
  const askLatest = async (symbol: string) => {
    const { statusCode, body } = await request(
      `http://127.0.0.1:${balancers.get('api')!.port}/api/pills/latest?symbol=${symbol}`,
      { headers: { 'x-api-key': key } },
    );
    const answer = (await body.json()) as { data?: { id: string } };
    return statusCode === 200 ? answer.data?.id : undefined;
  };

  for (const [kind, counter] of Object.entries(COUNTERS)) {
    await waitFor(`both of ${kind} to work`, async () => {
      const both = instances.get(kind as Kind)!;
      const counts = await Promise.all(both.map((one) => count(one, counter)));
      return counts.every((one) => one > 0) || counts.join(', ');
    });
  }

  for (const kind of NAMES) {
    const [killed] = instances.get(kind)!.splice(0, 1);
    balance(kind);
    await killed!.kill();
  }
  const before = acknowledged.size;
  await waitFor('ingest to go on', () => acknowledged.size > before + 200);
  await posts.stop();

  const rows = async () => {
    const answer = await clickhouse.query({
      query: 'SELECT count() AS rows, uniqExact(symbol, id) AS pills FROM pills FINAL',
      format: 'JSONEachRow',
      clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
    });
    return (await answer.json<{ rows: number; pills: number }>())[0]!;
  };
  const all = acknowledged.size;
  await waitFor('the table', async () => {
    const { pills } = await rows();
    return pills >= all || `${pills} of ${all}`;
  });
  expect(await rows()).toEqual({ rows: all, pills: all });

  const expected = [...acknowledged.keys()].sort();
  for (const { ids, stream } of clients) {
    await waitFor('the sockets', () => ids.length >= all || `${ids.length} of ${all}`);
    expect([...ids].sort()).toEqual(expected);
    stream.close();
  }

  const newest = new Map([...acknowledged].map(([id, symbol]) => [symbol, id]));
  for (const [symbol, id] of newest) {
    await waitFor(`the newest pill of ${symbol}`, async () => {
      const seen = await askLatest(symbol);
      return seen === id || `${seen}, not ${id}`;
    });
  }
}, 240_000);
