import { inRounds, isOnTime, LATE_NOTE } from '../harness/cells.ts';
import {
  type Column,
  fixed,
  ms,
  percentileColumns,
  ratioColumns,
  table,
  verdict,
} from '../harness/columns.ts';
import { meterCpu } from '../harness/cpu.ts';
import { compareRounds, median } from '../harness/ratios.ts';
import { flag, type OptionsOf, type Say } from '../harness/scenario.ts';
import { startWorker } from '../harness/worker.ts';
import type { HttpLoad, HttpLoadReport } from './http-load-process.ts';
import type { RequestPlan } from './requests.ts';

/** A server with one kind of request, measured in turn with the others. */
export interface Target<Name extends string> {
  readonly name: Name;
  readonly pid: number;
  readonly port: number;
  readonly connections: number;
  /** Pills, or reads, in one request. */
  readonly perRequest: number;
  /** Called for each run: pills need new ids in each. */
  requests(): RequestPlan;
}

/** Targets, the load client, and the engine whose CPU is reported beside the server's. */
export interface HttpBench<Name extends string> {
  readonly targets: readonly Target<Name>[];
  /** The target that all ratios refer to. */
  readonly reference: Name;
  readonly client: ReturnType<typeof startLoadClient>;
  readonly engine: 'kafka' | 'postgres';
  /** Undefined if the engine runs elsewhere. */
  readonly enginePid: number | undefined;
}

/** A run of the closed loop, or of the open one at a rate. */
type TargetRun<Name extends string> = Awaited<ReturnType<typeof runOnce<Name>>>;
export type ClosedRun<Name extends string> = TargetRun<Name> & { readonly round: number };
type OpenRun<Name extends string> = TargetRun<Name> & {
  readonly perS: number;
  readonly open: NonNullable<HttpLoadReport['open']>;
  /** False where the client itself was late. */
  readonly valid: boolean;
};

export const HTTP_FLAGS = {
  rounds: flag.whole('rounds of the closed loop', 1, 1_000, 3),
  seconds: flag.whole('length of each of its runs', 1, 3_600, 8),
  warmUp: flag.whole('seconds on each target before, not counted', 0, 600, 10),
  openSeconds: flag.whole('length of each run of the open loop', 1, 3_600, 20),
  connections: flag.whole('keep-alive connections', 1, 1_000, 50),
};
export type HttpOptions = OptionsOf<typeof HTTP_FLAGS>;

export function startLoadClient() {
  const { pid, ask, stop } = startWorker('http-load/http-load-process');
  return { pid, stop, run: (load: HttpLoad) => ask<HttpLoadReport>(load) };
}

/**
 * Measures all targets in the closed loop, in turn, and some in the open one.
 * @param goals.openPerS rate of a target in the open loop; 0 leaves it out; `halfOf` says of what
 * @param goals.goalOf whether a target reached its goal in the closed loop
 * @param goals.p99MaxMicros the goal of the open loop, for all targets but the reference
 */
export async function measureTargets<Name extends string>(
  bench: HttpBench<Name>,
  options: HttpOptions,
  say: Say,
  goals: {
    readonly unit: string;
    readonly halfOf: string;
    readonly openPerS: (name: Name, summaries: readonly TargetSummary<Name>[]) => number;
    readonly goalOf: (summary: TargetSummary<Name>) => string;
    readonly p99MaxMicros: number;
  },
) {
  const { targets, reference } = bench;
  const { connections, rounds, seconds, warmUp, openSeconds } = options;
  const inTurn = (count: number, lengthS: number) =>
    inRounds(targets, count, (target) => runOnce(bench, target, lengthS, 0));
  say(`warm-up, not counted: ${warmUp} s each`);
  if (warmUp > 0) await inTurn(1, warmUp);
  say(`closed loop: ${connections} connections, ${rounds} rounds of ${seconds} s each`);
  const runs = await inTurn(rounds, seconds);
  const summaries = targets.map(({ name }) => summarise(runs, name, reference));
  const halfRate: OpenRun<Name>[] = [];
  for (const target of targets) {
    const perS = Math.round(goals.openPerS(target.name, summaries));
    if (perS === 0) continue;
    say(`open loop, ${target.name}: ${perS} ${goals.unit}/s for ${openSeconds} s`);
    const run = await runOnce(bench, target, openSeconds, perS);
    const open = run.load.open!;
    halfRate.push({ ...run, perS, open, valid: isOnTime(open.lateness) });
  }
  const failed = [...runs, ...halfRate].reduce((sum, run) => sum + failedOf(run), 0);
  return {
    figures: { connections, seconds, summaries, runs, halfRate },
    lines: [
      `Closed loop, ${connections} connections, ${rounds} rounds of ${seconds} s; medians`,
      ...table(summaries, rateColumns(bench, goals.unit, goals.goalOf)),
      '',
      `Open loop at half of ${goals.halfOf}, ms from the planned send; goal p99 ≤ ${ms(goals.p99MaxMicros)}`,
      ...table(halfRate, openColumns(reference, goals.unit, goals.p99MaxMicros)),
    ],
    isProof: failed === 0 && halfRate.every(({ valid }) => valid),
  };
}

/** Runs the load client once. @param perS requests a second, open loop; 0 = closed loop */
async function runOnce<Name extends string>(
  { client, engine, enginePid }: HttpBench<Name>,
  target: Target<Name>,
  seconds: number,
  perS: number,
) {
  const { name, pid, port, connections, perRequest } = target;
  const meter = meterCpu({ server: pid, client: client.pid, [engine]: enginePid });
  const load = await client.run({ port, requests: target.requests(), connections, seconds, perS });
  const { cpu, busyCores, otherCores } = meter();
  return {
    target: name,
    count: load.ok * perRequest,
    countPerS: load.perS * perRequest,
    load,
    /** CPU seconds of the server and the engine; NaN where they cannot be read. */
    serverCpuS: cpu.server ?? Number.NaN,
    engineCpuS: cpu[engine] ?? Number.NaN,
    busyCores,
    otherCores,
  };
}

function failedOf({ load }: { readonly load: Pick<HttpLoadReport, 'failures'> }): number {
  return Object.values(load.failures).reduce((sum, count) => sum + count, 0);
}

export type TargetSummary<Name extends string> = ReturnType<typeof summarise<Name>>;

/** Medians of the rounds of one target; a ratio is to the reference in the same round. */
export function summarise<Name extends string>(
  runs: readonly ClosedRun<Name>[],
  target: Name,
  reference: Name,
) {
  const own = runs.filter((run) => run.target === target);
  const others = runs.filter((run) => run.target === reference);
  const medianOf = (figure: (run: ClosedRun<Name>) => number) => median(own.map(figure));
  const { median: perS, ...ratios } = compareRounds(own, others, ({ countPerS }) => countPerS);
  return {
    target,
    perS,
    ...ratios,
    /** The ratio of requests per CPU second of the server, whatever else took cores. */
    cpuRatio: compareRounds(own, others, ({ count, serverCpuS }) => count / serverCpuS).ratio,
    /** CPU µs a pill or read: of the server, the engine, the load client. */
    serverMicros: medianOf(({ serverCpuS, count }) => (serverCpuS * 1e6) / count),
    engineMicros: medianOf(({ engineCpuS, count }) => (engineCpuS * 1e6) / count),
    clientMicros: medianOf(({ load, count }) => (load.cpuS * 1e6) / count),
    /** If this is well below 1, something other than the server limited the rate. */
    serverCores: medianOf(({ serverCpuS, load }) => serverCpuS / load.seconds),
    busyCores: medianOf(({ busyCores }) => busyCores),
    otherCores: medianOf(({ otherCores }) => otherCores),
    failed: own.reduce((sum, run) => sum + failedOf(run), 0),
  };
}

function rateColumns<Name extends string>(
  { reference, engine }: Pick<HttpBench<Name>, 'reference' | 'engine'>,
  unit: string,
  goalOf: (summary: TargetSummary<Name>) => string,
): Column<TargetSummary<Name>>[] {
  const byCpu: Column<TargetSummary<Name>> = ['× by CPU', ({ cpuRatio }) => fixed(2, cpuRatio)];
  const ratios = [...ratioColumns<TargetSummary<Name>>(`× ${reference}`), byCpu];
  return [
    ['what', ({ target }) => target],
    [`${unit}/s`, ({ perS }) => Math.round(perS)],
    ...ratios.map(
      ([head, cell]): Column<TargetSummary<Name>> => [
        head,
        (one) => (one.target === reference ? '' : cell(one)),
      ],
    ),
    ['server µs', ({ serverMicros }) => fixed(1, serverMicros)],
    [`${engine} µs`, ({ engineMicros }) => fixed(1, engineMicros)],
    ['client µs', ({ clientMicros }) => fixed(1, clientMicros)],
    ['server cores', ({ serverCores }) => fixed(2, serverCores)],
    ['cores busy', ({ busyCores }) => fixed(2, busyCores)],
    ['strangers', ({ otherCores }) => fixed(2, otherCores)],
    ['goal', (one) => (one.failed > 0 ? `INVALID: ${one.failed} failed` : goalOf(one))],
  ];
}

function openColumns<Name extends string>(
  reference: Name,
  unit: string,
  p99MaxMicros: number,
): Column<OpenRun<Name>>[] {
  const goal = (run: OpenRun<Name>) => {
    if (failedOf(run) > 0) return `INVALID: ${failedOf(run)} failed`;
    if (!run.valid) return LATE_NOTE;
    if (run.target === reference) return '';
    return `p99 ≤ ${ms(p99MaxMicros)}: ${verdict(run.open.answered.p99 <= p99MaxMicros)}`;
  };
  return [
    ['what', ({ target }) => target],
    [`${unit}/s`, ({ perS }) => perS],
    ...percentileColumns<OpenRun<Name>>(({ open }) => open.answered),
    ...percentileColumns<OpenRun<Name>>(({ open }) => open.lateness, ['p99', 'max'], 'late '),
    ['cores busy', ({ busyCores }) => fixed(2, busyCores)],
    ['strangers', ({ otherCores }) => fixed(2, otherCores)],
    ['goal', goal],
  ];
}
