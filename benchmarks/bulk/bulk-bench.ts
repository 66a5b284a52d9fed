import { Agent } from 'undici';
import type { Scope } from '../../domain/access/scopes.ts';
import { requireTopicSettings } from '../../lib/kafka/topic-settings.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { addLiftedAccount } from '../access/lifted-account.ts';
import { writeLivePills } from '../analytics/live-pills.ts';
import { openPillTable, SYMBOLS } from '../analytics/pill-table.ts';
import { openApi } from '../analytics/questions.ts';
import { benchSymbols, openBenchKafka } from '../harness/bench-pills.ts';
import { inRounds } from '../harness/cells.ts';
import { meterCpu } from '../harness/cpu.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { reportOf } from './bulk-report.ts';
import { keepExporting } from './exporting.ts';
import { runOthers } from './isolation.ts';
import { type Day, fetchDay, WAYS } from './ways.ts';

const FLAGS = {
  rows: flag.whole('pills of the day', 1_000, 900_000, 864_000),
  rounds: flag.whole('rounds, in which the ways and the phases alternate', 1, 15, 3),
  verifyPerS: flag.whole('market verify requests a second in a phase', 1, 1_000, 50),
  pillsPerS: flag.whole('pills a second in a phase, to one socket', 1, 1_000, 50),
  seconds: flag.whole('length of a phase', 1, 3_600, 10),
};
type Options = OptionsOf<typeof FLAGS>;

const DAY_MS = 86_400_000;
const PHASES = ['quiet', 'export'] as const;

/** How an analyst gets a day, and what an export costs other accounts. */
export const BULK: Scenario<Options> = {
  name: 'bulk',
  description: 'A day as JSON, as Arrow and as an export; other accounts beside a running export.',
  flags: FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: Options): Promise<Report> {
  const { say } = stage;
  const { day, accessOf, others, pids } = await openPlatform(stage, options);
  const reads = await accessOf('read');
  const exports = await accessOf('exports');
  const ways = await inRounds(WAYS, options.rounds, async (way, round) => {
    const meter = meterCpu(pids);
    const fetched = await fetchDay(way === 'export' ? exports : reads, way, day);
    const { seconds, cpu } = meter();
    say(`round ${round}: ${way} in ${seconds.toFixed(1)} s`);
    return { way, ...fetched, seconds, cpu };
  });
  await runOthers({ ...others, seconds: 1 });
  const phases = await inRounds(PHASES, options.rounds, async (kind, round) => {
    say(`round ${round}: other accounts, ${kind}`);
    if (kind === 'quiet') return { kind, ...(await runOthers(others)), exported: 0 };
    const exporting = await keepExporting(await accessOf('exports'), day);
    const run = await runOthers(others);
    return { kind, ...run, exported: await exporting.stop() };
  });
  return reportOf(options, ways, phases);
}

/** Starts the processes, and fills the table with a day that ends now. */
async function openPlatform(stage: Stage, { rows, verifyPerS, pillsPerS, seconds }: Options) {
  const { engines, say } = stage;
  const log = await stage.addNamespace('bulk');
  const { namespace } = log;
  const db = stage.openDatabase(namespace);
  const schemas = createSchemaClient(engines.registryUrl, namespace);
  // Refuses to go on if the topics are not as the processes expect them.
  await requireTopicSettings(openBenchKafka(engines.kafkaBrokers), schemas, namespace);
  const table = openPillTable(engines.clickhouseUrl, namespace);
  stage.onStop(table.close);
  say(`filling the table with ${rows} pills`);
  // Pills of a former log: exports and history show them, and they are ahead of no position.
  await table.fillTo(rows, 'former');
  await table.merge();
  const to = new Date();
  const from = new Date(to.getTime() - DAY_MS);
  const day: Day = {
    symbols: benchSymbols(SYMBOLS),
    ...{ from: from.toISOString(), to: to.toISOString() },
  };
  await stage.start('latest', namespace);
  await stage.start('analytics', namespace);
  const { port: streamPort } = await stage.start('stream', namespace);
  const { port, pid } = await stage.start('api', namespace);
  const dispatcher = new Agent({ connections: 10 });
  stage.onStop(() => dispatcher.close());
  const accessOf = async (scope: Scope) => {
    const { key } = await addLiftedAccount(db, 'institutional', stage.pepper, scope);
    return { url: `http://127.0.0.1:${port}`, key, dispatcher };
  };
  const api = openApi(port, (await accessOf('read')).key);
  stage.onStop(api.close);
  const others = {
    ...{ log, api, verifyPerS, pillsPerS, seconds },
    ...{ stream: `ws://127.0.0.1:${streamPort}`, streamKey: (await accessOf('stream')).key },
    live: await writeLivePills(log, api),
  };
  return { day, accessOf, others, pids: { api: pid, clickhouse: engines.pids().clickhouse } };
}
