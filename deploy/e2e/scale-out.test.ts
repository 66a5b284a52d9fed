import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ClickHouse,
  databaseName,
  openClickHouse,
} from '../../lib/clickhouse/clickhouse-client.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { partitionOf } from '../../schemas/partition.ts';
import { createClient } from '../../sdk/index.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { type Balancer, openBalancer } from '../../testing/balancer.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { createPoster } from '../../testing/poster.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';

const KINDS = {
  ingest: { entry: 'gateway/ingest/main.js', args: [], portName: 'INGEST_PORT' },
  latest: { entry: 'pipelines/main.js', args: ['latest'], portName: undefined },
  analytics: { entry: 'pipelines/main.js', args: ['analytics'], portName: undefined },
  api: { entry: 'gateway/api/main.js', args: [], portName: 'API_PORT' },
  stream: { entry: 'gateway/stream/main.js', args: [], portName: 'STREAM_PORT' },
} as const;
type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];

/**
 * The other instances take over from a killed one within 10 s: its session in the group lasts 6 s.
 * A machine on which ten processes, the engines and other tests share two cores takes many times as
 * long, and a rebalance waits for the next heartbeat of each member.
 */
const HANDOVER_MAX_MS = 100_000;

const PARTITIONS = 8;
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
  namespace = await createNamespace({ partitions: PARTITIONS });
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'institutional' }));
  clickhouse = openClickHouse({
    url: namespace.engines.clickhouseUrl,
    database: databaseName(namespace.name),
  });
  for (const kind of ['ingest', 'api', 'stream'] as const) {
    balancers.set(kind, await openBalancer());
  }
  // Two at once: with ten, a small machine exceeds the time limit of each start.
  for (const kind of NAMES) await Promise.all([start(kind), start(kind)]);
});

afterAll(async () => {
  for (const balancer of balancers.values()) balancer.close();
  await Promise.all([...instances.values()].flat().map((one) => one.stop()));
  await freshConnections.close();
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
  const open = instances.get(kind)!.flatMap((one) => ports.get(one) ?? []);
  balancers.get(kind)?.use(open);
}

/** A counter of one process, summed over all labels. */
async function count(one: TestProcess, name: string): Promise<number> {
  const { body } = await request(`${one.opsUrl}/metrics.json`);
  const metrics = (await body.json()) as { name: string; values: { value: number }[] }[];
  const values = metrics.find((metric) => metric.name === name)?.values ?? [];
  return values.reduce((sum, { value }) => sum + value, 0);
}

/** Counters that show that a process works. */
const COUNTERS = {
  ingest: 'pillole_ingest_pills_total',
  latest: 'pillole_latest_records_total',
  analytics: 'pillole_analytics_rows_total',
  stream: 'pillole_stream_deliveries_total',
} as const;

/** Posts pills through the balancer until `stop`. */
function keepPosting() {
  const poster = createPoster(`http://127.0.0.1:${balancers.get('ingest')!.port}`);
  /** Symbols by id, in order of sending for each symbol: one sender sends all pills of a symbol. */
  const acknowledged = new Map<string, string>();
  /** Ids of pills sent after the last mark, by partition, in order of the answers. */
  const fresh = new Map<number, string[]>();
  let mark = 0;
  let isPosting = true;
  const posting = Array.from({ length: POSTERS }, async (_, sender) => {
    for (let n = 0; isPosting; n += 1) {
      const pill = makePill({ symbol: SYMBOLS[(n * POSTERS + sender) % SYMBOLS.length]! });
      const marked = mark;
      await poster.post(pill);
      acknowledged.set(pill.id, pill.symbol);
      if (marked === mark) {
        const partition = partitionOf(pill.symbol, PARTITIONS);
        fresh.set(partition, [...(fresh.get(partition) ?? []), pill.id]);
      }
      await sleep(PAUSE_MS);
    }
  });
  return {
    acknowledged,
    /** Pills sent after the last mark, by partition. */
    fresh: (): ReadonlyMap<number, readonly string[]> => fresh,
    mark() {
      mark += 1;
      fresh.clear();
    },
    async stop() {
      isPosting = false;
      await Promise.all(posting);
      await poster.close();
    },
  };
}

/** Waits until an API process has the key in memory: a busy PostgreSQL may miss the first lookup. */
const knowsKey = (api: TestProcess) =>
  waitFor('the API to know the key', async () => {
    const { statusCode, body } = await request(
      `http://127.0.0.1:${ports.get(api)!}/api/pills/latest?symbols=${SYMBOLS}`,
      { headers: { 'x-api-key': key } },
    );
    await body.dump();
    return statusCode === 200 || String(statusCode);
  });

/** Opens a connection for each request, because the balancer distributes connections. */
const freshConnections = new Agent({ pipelining: 0 });

function follow() {
  const stream = createClient({
    apiUrl: `http://127.0.0.1:${balancers.get('api')!.port}`,
    streamUrl: `ws://127.0.0.1:${balancers.get('stream')!.port}`,
    key,
  }).stream({ symbols: '*', snapshot: false, fillGaps: false });
  const ids: string[] = [];
  const seen = new Set<string>();
  let isLive = false;
  stream.on('pill', ({ id }) => {
    ids.push(id);
    seen.add(id);
  });
  stream.on('open', () => {
    isLive = true;
  });
  return { stream, ids, seen, isLive: () => isLive };
}

test('two instances of each process share the work; one of each is killed, and no pill is lost or duplicated', async () => {
  const clients = Array.from({ length: CLIENTS }, follow);
  await waitFor('all sockets to be live', () => clients.every((client) => client.isLive()));
  const posts = keepPosting();
  const { acknowledged } = posts;
  /** The newest pill of each symbol. */
  const askLatest = async () => {
    const { statusCode, body } = await request(
      `http://127.0.0.1:${balancers.get('api')!.port}/api/pills/latest?symbols=${SYMBOLS}`,
      { headers: { 'x-api-key': key }, dispatcher: freshConnections },
    );
    const answer = (await body.json()) as { data?: Record<string, { id: string }> };
    if (statusCode !== 200) throw new Error(`The API answered ${statusCode}.`);
    return new Map(Object.entries(answer.data!).map(([symbol, { id }]) => [symbol, id]));
  };
  /** True if `has` accepts a pill of each partition that was sent after the mark. */
  const ofEach = (has: (id: string) => boolean): true | string => {
    const without = Array.from({ length: PARTITIONS }, (_, partition) => partition).filter(
      (partition) => !posts.fresh().get(partition)?.some(has),
    );
    return without.length === 0 || `none yet of partitions ${without}`;
  };
  const ofLatest = async () => {
    // The plan allows 10 calls a second to one process.
    await sleep(150);
    const ids = new Set((await askLatest()).values());
    return ofEach((id) => ids.has(id));
  };
  const HAND_OVERS: Readonly<Record<Kind, () => Promise<true | string> | true | string>> = {
    ingest: () => ofEach(() => true),
    latest: ofLatest,
    async analytics() {
      await sleep(150);
      const answer = await clickhouse.query({
        query: 'SELECT id FROM pills',
        format: 'JSONEachRow',
      });
      const ids = new Set((await answer.json<{ id: string }>()).map(({ id }) => id));
      return ofEach((id) => ids.has(id));
    },
    api: ofLatest,
    stream() {
      const found = clients.map(({ seen }) => ofEach((id) => seen.has(id)));
      return found.find((one) => one !== true) ?? true;
    },
  };

  await Promise.all(instances.get('api')!.map(knowsKey));
  const answeredBy = (api: TestProcess) => balancers.get('api')!.opened(ports.get(api)!);
  for (let asked = 0; asked < 10; asked += 1) await askLatest();
  expect(instances.get('api')!.map(answeredBy)).toEqual([5, 5]);
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
    posts.mark();
    const has = HAND_OVERS[kind];
    await waitFor(`another ${kind} to take over the work`, has, HANDOVER_MAX_MS);
  }
  const before = acknowledged.size;
  await waitFor('ingest to continue', () => acknowledged.size > before + 200);
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
  await waitFor('the newest pill of each symbol', async () => {
    await sleep(150);
    const seen = await askLatest();
    const wrong = [...newest].filter(([symbol, id]) => seen.get(symbol) !== id);
    return wrong.length === 0 || `not the newest of ${wrong.map(([symbol]) => symbol)}`;
  });
}, 900_000);
