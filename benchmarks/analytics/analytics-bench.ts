import { setTimeout as sleep } from 'node:timers/promises';
import { requireTopicSettings } from '../../lib/kafka/topic-settings.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { makePill, openBenchKafka, writePills } from '../harness/bench-pills.ts';
import { waitForArrivals } from '../harness/cells.ts';
import { type Column, fixed, grouped, percentileColumns, table } from '../harness/columns.ts';
import { cpuSecondsOf } from '../harness/cpu.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { writeLivePills } from './live-pills.ts';
import { openPillTable, SYMBOLS } from './pill-table.ts';
import { openApi, type QueryName, queryApi, queryBare, runQuestions, verify } from './questions.ts';

const FLAGS = {
  sinkPills: flag.whole('pills in the log for the sink', 10_000, 10_000_000, 500_000),
  sizes: flag.rising('pills in the table', 1_000, 100_000_000, [1_000_000, 10_000_000]),
  perS: flag.whole('questions a second, open loop', 1, 1_000, 10),
  verifyPerS: flag.whole('market verify requests a second', 1, 1_000, 100),
  seconds: flag.whole('length of each run', 1, 3_600, 15),
};
type Options = OptionsOf<typeof FLAGS>;

const WARM_UP_SECONDS_MAX = 3;
/** Time for merges and caches to settle. */
const SETTLE_MS = 2_000;
/** The first rows of the sink are not counted, because they include the start of its process. */
const WARM_SHARE = 0.1;
const SINK_MAX_MS = 3_600_000;
const STALLED_MS = 60_000;
const OLD_IDS = 2_000;

export const ANALYTICS: Scenario<Options> = {
  name: 'analytics',
  description: 'Rows a second of the sink; bars and summaries of a day; market verify.',
  flags: FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: Options): Promise<Report> {
  const { engines, say } = stage;
  const { perS, verifyPerS, seconds } = options;
  const sink = await measureSink(stage, options.sinkPills);
  const log = await stage.addNamespace('queries');
  const { namespace } = log;
  const key = await stage.addDemoKey(namespace);
  const schemas = createSchemaClient(engines.registryUrl, namespace);
  const kafka = openBenchKafka(engines.kafkaBrokers);
  const { epoch } = await requireTopicSettings(kafka, schemas, namespace);
  const pillTable = openPillTable(engines.clickhouseUrl, namespace);
  stage.onStop(pillTable.close);
  await stage.start('latest', namespace);
  await stage.start('analytics', namespace);
  const api = openApi((await stage.start('api', namespace)).port, key);
  stage.onStop(api.close);
  const live = await writeLivePills(log, api);

  const queries: QueryRun[] = [];
  const verifications = [];
  for (const pills of options.sizes) {
    say(`filling the table to ${pills} pills`);
    await pillTable.fillTo(pills, epoch);
    await pillTable.merge();
    await sleep(SETTLE_MS);
    for (const query of ['bars', 'summary'] as const) {
      for (const over of ['bare', 'api'] as const) {
        const ask = (n: number) =>
          over === 'api' ? queryApi(api, query, n) : queryBare(pillTable, query, n);
        await runQuestions(perS, Math.min(WARM_UP_SECONDS_MAX, seconds), ask);
        queries.push({ query, over, pills, ...(await runQuestions(perS, seconds, ask)) });
        say(`${query} over ${over} at ${pills} pills: done`);
      }
    }
    // Ids of all days, which were not verified before.
    const old = await pillTable.random(OLD_IDS);
    const subjects = [
      ['symbol', verifyPerS, (n: number) => ({ symbol: live[n % live.length]!.symbol })],
      ['recent id', verifyPerS, (n: number) => live[(n * 7) % live.length]!],
      // Pills that only the table has: each needs a statement, and four statements run at a time.
      ['old id', perS, (n: number) => old[n % old.length]!],
    ] as const;
    for (const [about, rate, subjectAt] of subjects) {
      const ask = (n: number) => verify(api, subjectAt(n));
      await runQuestions(rate, 1, ask);
      verifications.push({ about, pills, ...(await runQuestions(rate, seconds, ask)) });
    }
    say(`verify at ${pills} pills: done`);
  }
  const bytes = await pillTable.bytesPerPill();
  return reportOf({ sink, queries, verifications, bytes });
}

type Run = Awaited<ReturnType<typeof runQuestions>> & { readonly pills: number };
type QueryRun = Run & { readonly query: QueryName; readonly over: 'bare' | 'api' };

function reportOf(figures: {
  readonly sink: Awaited<ReturnType<typeof measureSink>>;
  readonly queries: readonly QueryRun[];
  readonly verifications: readonly (Run & { readonly about: string })[];
  readonly bytes: number;
}): Report {
  const { sink, queries, verifications, bytes } = figures;
  return {
    figures,
    lines: [
      `Sink: ${grouped(sink.rowsPerS)} rows/s over ${sink.rows} rows, ` +
        `${fixed(1, sink.cpuMicros)} CPU µs a row; ${fixed(1, bytes)} bytes a pill on disk`,
      '',
      ...table(queries, [
        ['query of a day of one symbol', ({ query }) => query],
        ['over', ({ over }) => over],
        ...loadColumns<QueryRun>(),
      ]),
      '',
      ...table(verifications, [
        ['market verify about', ({ about }) => about],
        ...loadColumns<(typeof verifications)[number]>(),
      ]),
    ],
    // The same query directly to ClickHouse against that over the API, at the median.
    ratios: queries.flatMap((own) => {
      if (own.over === 'bare') return [];
      const { query, pills } = own;
      const bare = queries.find(
        (one) => one.over === 'bare' && one.query === query && one.pills === pills,
      )!;
      const name = `ClickHouse ÷ API, p50, ${query} over ${grouped(pills)} pills`;
      const valid = bare.failed + own.failed === 0;
      return [{ name, ratio: bare.latency.p50 / own.latency.p50, valid }];
    }),
    isProof: [...queries, ...verifications].every(({ failed }) => failed === 0),
  };
}

function loadColumns<Row extends Run>(): Column<Row>[] {
  return [
    ['pills', ({ pills }) => grouped(pills)],
    ['a second', ({ perS }) => perS],
    ...percentileColumns<Row>(({ latency }) => latency, ['p50', 'p99', 'max']),
    ['failed', ({ failed }) => failed],
  ];
}

/**
 * Writes pills to the log of a new namespace, then starts the sink and watches its table: the
 * queries have a table of their own, which ClickHouse fills itself.
 */
async function measureSink(stage: Stage, pills: number) {
  const { engines, say } = stage;
  const log = await stage.addNamespace('sink');
  const sinkTable = openPillTable(engines.clickhouseUrl, log.namespace);
  stage.onStop(sinkTable.close);
  say(`writing ${pills} pills to the log`);
  await writePills(log, pills, (n) => makePill(`sink-${n}`, `BENCH.${n % SYMBOLS}`, n));
  say('starting the sink');
  const sink = await stage.start('analytics', log.namespace);
  const limits = { maxMs: SINK_MAX_MS, stallMs: STALLED_MS };
  await waitForArrivals(sinkTable.count, pills * WARM_SHARE, limits);
  const from = { rows: await sinkTable.count(), at: performance.now() };
  await waitForArrivals(sinkTable.count, pills, limits);
  const seconds = (performance.now() - from.at) / 1_000;
  const stored = await sinkTable.count();
  if (stored < pills) throw new Error(`The sink has stalled at ${stored} rows.`);
  const cpuS = cpuSecondsOf(sink.pid);
  await sink.stop();
  const rows = pills - from.rows;
  // CPU µs a row of the sink's process, its start included.
  return { rows, seconds, rowsPerS: rows / seconds, cpuMicros: (cpuS * 1e6) / pills };
}
