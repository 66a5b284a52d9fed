import { setTimeout as sleep } from 'node:timers/promises';
import { databaseName, openClickHouse } from '../../lib/clickhouse.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { silentLog } from '../../lib/log.ts';
import { requireTopicSettings } from '../../lib/settings.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { API, LATEST, startBenchProcess } from '../bench-process.ts';
import { buildStage, makeFolder } from '../fanout/stage.ts';
import { describeMachine, type Machine } from '../machine.ts';
import { type QueryRun, runQueries } from './queries.ts';
import { openRows } from './rows.ts';
import { measureSink, type SinkRun } from './sink.ts';
import { openVerifications, type VerifyRun } from './verifications.ts';

export interface AnalyticsOptions {
  /** Pills in the log for the sink. */
  readonly sinkPills: number;
  /** Pills in the table, rising, for the queries. */
  readonly sizes: readonly number[];
  /** Questions a second, open loop: of analytics and about old ids, and of market verify. */
  readonly perS: number;
  readonly verifyPerS: number;
  readonly seconds: number;
  readonly say: (line: string) => void;
}

export interface AnalyticsResult {
  readonly benchmark: 'analytics';
  readonly at: string;
  readonly machine: Machine;
  readonly sink: SinkRun;
  readonly queries: readonly QueryRun[];
  readonly verifications: readonly VerifyRun[];
  readonly disk: {
    readonly pills: number;
    readonly bytesPerPill: number;
    readonly withoutCodecs: number;
    readonly byColumn: readonly { readonly name: string; readonly bytes: number }[];
  };
}

/** Runs the benchmark; stops and removes all that it started. */
export async function measureAnalytics(options: AnalyticsOptions): Promise<AnalyticsResult> {
  const { say, sizes } = options;
  const machine = describeMachine();
  const stops: (() => Promise<unknown> | unknown)[] = [];
  const onStop = (stop: () => Promise<unknown> | unknown) => void stops.push(stop);
  try {
    const stage = await buildStage(makeFolder(onStop), say, onStop);
    const { engines, place, ports, logs } = stage;
    // The sink has tables of its own: what the queries read is filled by ClickHouse itself.
    const sinkPlace = { engines, place, ports, namespace: logs.loop.namespace };
    const sinkTables = openClickHouse({
      url: engines.clickhouseUrl,
      database: databaseName(logs.loop.namespace),
    });
    onStop(() => sinkTables.close());
    const sink = await measureSink(sinkPlace, sinkTables, options.sinkPills, say);

    const { namespace } = logs.stream;
    const client = createKafkaClient(engines.kafkaBrokers.split(','), 'bench', silentLog);
    const schemas = createSchemaClient(engines.registryUrl, namespace);
    const { epoch } = await requireTopicSettings(client, schemas, namespace);
    const rows = openRows(engines.clickhouseUrl, namespace, epoch);
    onStop(() => rows.close());
    const around = { engines, place, ports, namespace };
    const latest = await startBenchProcess(LATEST, around);
    onStop(() => latest.stop());
    const api = await startBenchProcess(API, around);
    onStop(() => api.stop());
    const asked = { apiPort: api.port, key: stage.key, clickhouse: rows.clickhouse, ...options };
    const checks = await openVerifications(around, asked);
    onStop(() => checks.close());
    const queries: QueryRun[] = [];
    const verifications: VerifyRun[] = [];
    let disk: AnalyticsResult['disk'] | undefined;
    for (const pills of sizes) {
      say(`filling the table to ${pills} pills`);
      await rows.fillTo(pills);
      disk ??= await measureDisk(rows, pills);
      await sleep(2_000); // merges and caches come to rest
      for (const query of ['bars', 'summary'] as const) {
        for (const over of ['bare', 'api'] as const) {
          const warm = { ...asked, seconds: Math.min(3, options.seconds) };
          await runQueries(query, over, pills, warm);
          queries.push(await runQueries(query, over, pills, asked));
          say(`${query} over ${over} at ${pills} pills: done`);
        }
      }
      const load = {
        ...{ perS: options.verifyPerS, oldPerS: options.perS, seconds: options.seconds },
      };
      verifications.push(...(await checks.run(pills, load)));
      say(`verify at ${pills} pills: done`);
    }
    return {
      benchmark: 'analytics',
      at: new Date().toISOString(),
      ...{ machine, sink, queries, verifications, disk: disk! },
    };
  } finally {
    for (const stop of stops.reverse()) {
      await Promise.resolve(stop()).catch((error: Error) => say(`not stopped: ${error.message}`));
    }
  }
}

async function measureDisk(rows: ReturnType<typeof openRows>, pills: number) {
  const plain = 'pills_without_codecs';
  await rows.copyWithoutCodecs(plain);
  const disk = {
    pills,
    bytesPerPill: await rows.bytesPerPill('pills'),
    withoutCodecs: await rows.bytesPerPill(plain),
    byColumn: await rows.bytesByColumn('pills'),
  };
  await rows.clickhouse.command({ query: `DROP TABLE ${plain} SYNC` });
  return disk;
}

/** Whether every question was answered rightly. */
export function isClean({ queries, verifications }: AnalyticsResult): boolean {
  return [...queries, ...verifications].every(({ failed }) => failed === 0);
}
