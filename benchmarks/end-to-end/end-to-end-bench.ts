import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readDemoKeys } from '../../domain/accounts/demo-key-file.ts';
import { defaultStackFile, readStackFile } from '../../lib/config/stack-file.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { benchSymbols } from '../harness/bench-pills.ts';
import { LATE_NOTE, noteOf } from '../harness/cells.ts';
import { type Column, grouped, ms, percentileColumns, table, verdict } from '../harness/columns.ts';
import { type CpuByProcess, meterCpu } from '../harness/cpu.ts';
import { inTemporaryFolder, launchStack } from '../harness/local-stack.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, type Say, type Scenario } from '../harness/scenario.ts';
import { buildLoadClient, type OpenClient } from '../load/load-client.ts';
import { type LoadSetup, runPills, startLoad } from '../load/pill-load.ts';
import { type EndToEndReaders, openLogReader, openSockets } from './readers.ts';

/** With 10 sockets at 1,000 pills/s, from the planned send. */
const GOAL = { perS: 1_000, clients: 10, p50MaxMicros: 3_000, p99MaxMicros: 12_000 } as const;

/** The time after which the effects of the warm-up (frames, compilation) have settled. */
const SETTLE_MS = 1_000;
const ARRIVALS_MAX_MS = 5_000;
/** The processes are measured this long while nothing is sent. */
const IDLE_SECONDS = 3;
/** Pace of the warm-up: below the rate that a cold stack can handle. */
const WARM_UP_PER_S = 300;
/** The first start on a machine downloads engines. */
const STACK_START_MAX_MS = 10 * 60_000;

const FLAGS = {
  rates: flag.rising('pills a second, e.g. 100,1000', 1, 100_000, [100, 1_000]),
  seconds: flag.whole('length of each run', 1, 3_600, 20),
  warmUp: flag.whole('seconds of load before, not counted', 0, 600, 20),
  clients: flag.whole('sockets, each on all symbols', 1, 1_000, 10),
  symbols: flag.whole('symbols BENCH.0, BENCH.1, …', 1, 10_000, 50),
  connections: flag.whole('keep-alive connections', 1, 1_000, 64),
  stack: flag.text('<file>', 'addresses of a running stack', defaultStackFile),
  ownStack: flag.on('start a stack for this, with data of its own, and stop it'),
  namespace: flag.text('<name>', 'PILLOLE_NAMESPACE of the stack', ''),
};
type Options = OptionsOf<typeof FLAGS>;

export type EndToEndRun = Awaited<ReturnType<typeof measureRun>>;

/**
 * POST→ok, POST→socket and produce→socket at each rate, open loop, and before them the log alone
 * at the same rate: ratios to it are compared between machines.
 */
export const END_TO_END: Scenario<Options> = {
  name: 'end-to-end',
  description: 'Open loop: POST→ok, POST→socket and produce→socket, timed from the planned send.',
  flags: FLAGS,
  measure: (options, say) =>
    inTemporaryFolder(async (folder) => {
      const openClient = buildLoadClient(folder);
      if (!options.ownStack) return measure(openClient, options.stack, options, say);
      say(`starting a stack of its own in ${folder}`);
      const launcher = path.join(packageRoot, 'dist/deploy/local/main.js');
      const command = [process.execPath, launcher, '--no-demo'] as const;
      const data = path.join(folder, 'data');
      const own = await launchStack(data, [...command], STACK_START_MAX_MS);
      return measure(openClient, own.stackFile, options, say).finally(own.stop);
    }),
};

async function measure(
  openClient: OpenClient,
  stackFile: string,
  options: Options,
  say: Say,
): Promise<Report> {
  const { rates, seconds, warmUp, clients, symbols, connections, namespace } = options;
  const { ingest, stream, kafka, registry } = readStackFile(stackFile);
  const apiKey = process.env.PILLOLE_API_KEY ?? readDemoKeys(stackFile).institutional;
  const pids = pidsOfStack(stackFile);
  const logReader = await openLogReader(kafka);
  const sockets = await openSockets(openClient, stream, apiKey, clients);
  say(`${clients} sockets are live`);
  const setup = {
    log: { kafkaBrokers: kafka, registryUrl: registry, namespace },
    symbols: benchSymbols(symbols),
    ingest,
    credential: process.env.INGEST_CREDENTIAL,
    connections,
    logTopic: logReader.topic,
  };
  const run = (via: LoadSetup['via'], perS: number, length: number) => {
    const readers = via === 'log' ? logReader : sockets;
    return measureRun({ ...setup, via }, perS, length, readers, pids);
  };
  const runs: EndToEndRun[] = [];
  try {
    for (const via of warmUp > 0 ? (['http', 'direct'] as const) : []) {
      say(`warm-up, not counted: ${via}, ${WARM_UP_PER_S} pills/s for ${warmUp} s`);
      await run(via, WARM_UP_PER_S, warmUp);
    }
    say(`idle CPU of the processes: nothing is sent for ${IDLE_SECONDS} s`);
    const meter = meterCpu({ ...pids, 'load client': sockets.pid });
    await sleep(IDLE_SECONDS * 1_000);
    const idleS = meter().cpu;
    for (const via of ['log', 'http', 'direct'] as const) {
      for (const perS of rates) {
        say(`${via}: ${perS} pills/s for ${seconds} s`);
        const done = await run(via, perS, seconds);
        const { delivered, lost, doubled } = done.watch;
        const late = `${ms(done.load.lateness.p99)} ms late`;
        say(`  p99 ${ms(delivered.p99)} ms, lost ${lost}, doubled ${doubled}, sent ${late}`);
        runs.push(done);
      }
    }
    return reportOf(runs, clients, idleS, [
      `${clients} sockets on all of ${symbols} symbols, ${seconds} s a run; ms`,
    ]);
  } finally {
    await Promise.all([sockets.close(), logReader.close()]);
  }
}

/** One rate and one way to send. Times in µs from the planned send. */
async function measureRun(
  setup: LoadSetup,
  perS: number,
  seconds: number,
  readers: EndToEndReaders,
  pids: Record<string, number>,
) {
  const load = await startLoad(setup);
  try {
    await sleep(SETTLE_MS);
    const pills = Math.round(perS * seconds);
    const { sent, cpu, valid } = await runPills(load, readers, {
      perS,
      pills,
      perPill: readers.readers,
      pids: { ...pids, 'load client': readers.pid },
      maxMs: ARRIVALS_MAX_MS,
    });
    const { answersMicros: _, ...reported } = sent;
    const watch = await readers.end(sent);
    return { via: setup.via, perS, pills, valid, load: reported, watch, cpu: cpu.cpu };
  } finally {
    load.stop();
  }
}

/** Pids of a stack's processes and engines, from the records of its launcher. */
function pidsOfStack(stackFile: string): Record<string, number> {
  const folder = path.join(path.dirname(stackFile), 'run');
  try {
    const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
    return Object.fromEntries(
      files.map((file) => {
        const { pid } = JSON.parse(readFileSync(path.join(folder, file), 'utf8'));
        return [file.slice(0, -'.json'.length), Number(pid)];
      }),
    );
  } catch {
    return {};
  }
}

/** Whether a run is conclusive: valid, with nothing lost, duplicated or unacknowledged. */
function isClean({ valid, load, watch }: EndToEndRun): boolean {
  return valid && watch.lost === 0 && watch.doubled === 0 && load.failed.length === 0;
}

/** Whether the goal was reached; undefined where the run is invalid, or the goal does not apply. */
export function isGoalKept({ via, perS, valid, watch }: EndToEndRun, clients: number) {
  if (!valid || via !== 'http' || perS !== GOAL.perS || clients !== GOAL.clients) return undefined;
  const { p50, p99 } = watch.delivered;
  return p50 <= GOAL.p50MaxMicros && p99 <= GOAL.p99MaxMicros;
}

const NAMES = {
  log: { whole: 'log alone', from: 'log alone: produce', to: 'consume' },
  http: { whole: 'POST → socket', from: 'POST', to: 'socket' },
  direct: { whole: 'produce → socket', from: 'produce', to: 'socket' },
} as const;

/**
 * The log alone against each of our ways to send, at the median. The p99 is judged by its goal
 * instead: on few cores it differs by factors between two runs of the same code.
 */
export function ratiosOf(runs: readonly EndToEndRun[]) {
  return runs.flatMap((run) => {
    const log = runs.find(({ via, perS }) => via === 'log' && perS === run.perS);
    if (run.via === 'log' || log === undefined) return [];
    return [
      {
        name: `log alone ÷ ${NAMES[run.via].whole}, p50 at ${grouped(run.perS)}/s`,
        ratio: log.watch.delivered.p50 / run.watch.delivered.p50,
        valid: isClean(run) && isClean(log),
      },
    ];
  });
}

function reportOf(
  runs: readonly EndToEndRun[],
  clients: number,
  idleS: CpuByProcess,
  head: string[],
): Report {
  type Row = ReturnType<typeof rowsOf>[number];
  return {
    figures: { clients, runs, idleS },
    lines: [
      ...head,
      '',
      ...table(
        runs.flatMap((run) => rowsOf(run, clients)),
        [
          ['what', ({ what }) => what],
          ['rate', ({ perS }) => `${perS}/s`],
          ...percentileColumns<Row>(({ figures }) => figures),
          ['lost', ({ lost }) => lost],
          ['doubled', ({ doubled }) => doubled],
          ['note', ({ note }) => note],
        ],
      ),
      '',
      'CPU a pill by process, µs, all its threads; its idle CPU is included',
      ...cpuLines(runs, idleS),
    ],
    ratios: ratiosOf(runs),
    plot: {
      title: `To ${clients} sockets, from the planned send`,
      series: runs.map(({ via, perS, valid, watch }) => ({
        name: `${NAMES[via].whole}, ${perS}/s${valid ? '' : ' (INVALID)'}`,
        encoded: watch.delivered.encoded,
        seconds: watch.timeline,
      })),
    },
    isProof: runs.every(isClean),
  };
}

function rowsOf(run: EndToEndRun, clients: number) {
  const { load, watch, perS, valid } = run;
  const { delivered, lost, doubled, remarks } = watch;
  const { from, to } = NAMES[run.via];
  const isKept = isGoalKept(run, clients);
  const goal = `p50 ≤ ${ms(GOAL.p50MaxMicros)}, p99 ≤ ${ms(GOAL.p99MaxMicros)}`;
  const note = noteOf(
    ...Object.entries(remarks).map(([what, count]) => `${what} × ${count}`),
    isKept === undefined ? '' : `${goal}: ${verdict(isKept)}`,
  );
  const failed = load.failed.length === 0 ? '' : `${load.failed.length} not acknowledged`;
  const none = { perS, lost: '', doubled: '' };
  return [
    { ...none, what: `${from} → ok`, figures: load.acknowledged, note: failed },
    { perS, lost, doubled, what: `${from} → ${to}`, figures: delivered, note },
    { ...none, what: '  generator late', figures: load.lateness, note: valid ? '' : LATE_NOTE },
  ];
}

/** One row per process, the busiest process first; one column per run. */
function cpuLines(runs: readonly EndToEndRun[], idleS: CpuByProcess): string[] {
  const perPill = ({ cpu, pills }: EndToEndRun, name: string) => ((cpu[name] ?? 0) * 1e6) / pills;
  const names = [...new Set(runs.flatMap(({ cpu }) => Object.keys(cpu)))];
  const last = runs.at(-1)!;
  names.sort((one, other) => perPill(last, other) - perPill(last, one));
  const columnOf = (run: EndToEndRun): Column<string> => {
    const all = names.reduce((sum, name) => sum + perPill(run, name), 0);
    const cell = (name: string) => (name === 'all' ? all : perPill(run, name)).toFixed(0);
    return [`${run.via} ${run.perS}/s`, cell];
  };
  const idle = (name: string) => {
    const seconds = idleS[name];
    return seconds === undefined ? '' : (seconds / IDLE_SECONDS).toFixed(3);
  };
  const columns: Column<string>[] = [...runs.map(columnOf), ['idle, cores', idle], ['', () => '']];
  return table([...names, 'all'], [['process', (name) => name], ...columns]);
}
