import { createTopics } from '../../lib/kafka/topics.ts';
import { benchSymbols, openBenchKafka } from '../harness/bench-pills.ts';
import { grouped, verdict } from '../harness/columns.ts';
import { pinTo, splitCores } from '../harness/cores.ts';
import type { Report } from '../harness/results.ts';
import { onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { naiveTopic } from '../http-load/reference-server.ts';
import {
  HTTP_FLAGS,
  type HttpOptions,
  measureTargets,
  startLoadClient,
  type TargetSummary,
} from '../http-load/targets.ts';

/** `batch` measures the same process as `ours`. */
const TARGETS = ['echo', 'naive', 'ours', 'batch'] as const;
export type Name = (typeof TARGETS)[number];

/** Goals on one core, validation, Avro and acks=all included. */
const GOALS = {
  ratioMin: 0.4,
  /** At half of the rate that the closed loop reached. */
  p99MaxMicros: 10_000,
  batchPillsPerSMin: 100_000,
} as const;
/** The most rows that a batch may have. */
const BATCH_PILLS = 1_000;
/** Enough for one batch to be parsed while others wait for the log. */
const BATCH_CONNECTIONS = 8;
const PARTITIONS = 4;

/**
 * The load that one ingest process handles on one core, beside a bare Fastify echo and a server
 * that sends to the log request by request; and its latency at half of that rate.
 */
export const INGEST: Scenario<HttpOptions> = {
  name: 'ingest',
  description: 'Pills a second of one ingest process on one core, beside a bare Fastify echo.',
  flags: HTTP_FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: HttpOptions): Promise<Report> {
  const { bench, cores } = await openBench(stage, options);
  const where =
    cores === null
      ? 'server, load client and broker share all cores (two cores and taskset are needed to part them)'
      : `server on core ${cores.server}; load client, broker and all else on ${cores.others}`;
  stage.say(where);
  const { figures, lines, isProof } = await measureTargets<Name>(bench, options, stage.say, {
    unit: 'pills',
    halfOf: 'the rate that ours reached',
    openPerS: (name, [, , ours]) => (name === 'echo' || name === 'ours' ? ours!.perS / 2 : 0),
    goalOf,
    p99MaxMicros: GOALS.p99MaxMicros,
  });
  const { summaries, halfRate } = figures;
  return {
    figures: { cores, ...figures },
    // The figures mean nothing without the first line.
    lines: [where, '', ...lines],
    ratios: ratiosOf(summaries, halfRate),
    plot: {
      title: `POST → ok at ${grouped(halfRate[0]!.perS)} pills/s, from the planned send`,
      series: halfRate.map(({ target, valid, open: { answered, timeline } }) => ({
        name: valid ? target : `${target} (INVALID)`,
        encoded: answered.encoded,
        seconds: timeline,
      })),
    },
    isProof,
  };
}

/** Starts the three servers on one core, and everything else on the other cores. */
async function openBench(stage: Stage, { connections }: HttpOptions) {
  const { engines } = stage;
  const { namespace } = await stage.addNamespace('ingest');
  await createTopics(openBenchKafka(engines.kafkaBrokers), [
    { name: naiveTopic(namespace), partitions: PARTITIONS, config: {} },
  ]);
  // After the start of the engines: a JVM sizes its threads by the cores that it sees then.
  const cores = splitCores();
  if (cores !== null) {
    pinTo(cores.others, [process.pid, ...Object.values(engines.pids())]);
    stage.onStop(() => pinTo(cores.all, [process.pid]));
  }
  const start = (name: 'echo' | 'naive' | 'ours') =>
    stage.start('ingest', namespace, {
      cores: cores?.server,
      ...(name === 'ours' ? {} : { entry: `ingest/${name}-main.js` }),
    });
  const [echo, naive, ours] = [await start('echo'), await start('naive'), await start('ours')];
  const servers = { echo, naive, ours, batch: ours };
  const client = startLoadClient();
  stage.onStop(client.stop);
  let runs = 0;
  const targets = TARGETS.map((name) => {
    const pills = name === 'batch' ? BATCH_PILLS : 1;
    const requests = () => {
      runs += 1;
      // A pill that was sent before would be answered from memory: each run has its own ids.
      const run = `b${Date.now().toString(36)}${runs}`;
      return { kind: 'write', symbols: benchSymbols(), run, pills } as const;
    };
    const { pid, port } = servers[name];
    const own = name === 'batch' ? BATCH_CONNECTIONS : connections;
    return { name, pid, port, connections: own, perRequest: pills, requests };
  });
  const enginePid = engines.pids().kafka;
  const bench = { targets, reference: 'echo', client, engine: 'kafka', enginePid } as const;
  return { bench, cores };
}

/** Whether a target reached its goal; empty where it has none. */
export function goalOf({ target, ratio, perS }: TargetSummary<Name>): string {
  if (target === 'ours') return `≥ ${GOALS.ratioMin} × echo: ${verdict(ratio >= GOALS.ratioMin)}`;
  if (target !== 'batch') return '';
  const goal = GOALS.batchPillsPerSMin;
  return `≥ ${grouped(goal)} pills/s: ${verdict(perS >= goal)}`;
}

export function ratiosOf(
  summaries: readonly TargetSummary<Name>[],
  halfRate: readonly { readonly valid: boolean }[],
) {
  const of = (name: Name) => summaries.find(({ target }) => target === name)!;
  const [echo, naive, ours, batch] = [of('echo'), of('naive'), of('ours'), of('batch')];
  // A client starved in the open loop was starved in the closed one too, which cannot detect this.
  const isOnTime = halfRate.every(({ valid }) => valid);
  const ratioOf = (name: string, ratio: number, ...both: TargetSummary<Name>[]) => ({
    name,
    ratio,
    valid: isOnTime && both.every(({ failed }) => failed === 0),
  });
  return [
    ratioOf('ours ÷ echo', ours.ratio, ours, echo),
    ratioOf('ours ÷ naive', ours.perS / naive.perS, ours, naive),
    ratioOf('batch ÷ echo', batch.ratio, batch, echo),
  ];
}
