import type { LoadClient } from '../http-load/load.ts';
import { failedOf, type HttpLoadReport } from '../http-load/plan.ts';
import { median } from '../median.ts';
import { busySeconds, cpuSecondsOf, cpuSecondsOfTree } from '../proc-stat.ts';
import type { Stage } from './stage.ts';

/** What is asked: the bare twin, or the API with a key of a tier. */
export type TargetName = 'bare' | 'pro' | 'institutional';

export interface Target {
  readonly name: TargetName;
  /** null asks without a key. */
  readonly key: string | null;
}

/** One run of the load client against one target, and what it took of the machine. */
export interface AccessRun {
  readonly target: TargetName;
  readonly load: HttpLoadReport;
  /** CPU seconds of the process that answered; null where they cannot be read. */
  readonly serverCpuS: number | null;
  /** Of PostgreSQL with all its backends; null as well when it is another machine's. */
  readonly postgresCpuS: number | null;
  /** Cores that were busy on average, with everything that ran on the machine. */
  readonly busyCores: number;
  /** Of these, what neither client, server nor PostgreSQL took: idling engines, and strangers. */
  readonly otherCores: number;
}

export interface RunOptions {
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second, open loop; null = closed loop. */
  readonly perS: number | null;
}

/** Runs the load client once against a target. */
export async function runOnce(
  stage: Stage,
  client: LoadClient,
  target: Target,
  options: RunOptions,
): Promise<AccessRun> {
  const { pid, port } = target.name === 'bare' ? stage.bare : stage.api;
  const read = () => ({
    server: cpuSecondsOf(pid),
    postgres: cpuSecondsOfTree(stage.postgresPid),
    busy: busySeconds(),
    at: performance.now(),
  });
  const before = read();
  const asked = { kind: 'read', symbols: stage.symbols, key: target.key } as const;
  const load = await client.run({ ...options, port, asked });
  const after = read();
  const serverCpuS = difference(after.server, before.server);
  const postgresCpuS = difference(after.postgres, before.postgres);
  const seconds = (after.at - before.at) / 1_000;
  const busyS = after.busy - before.busy;
  const ownS = load.cpuS + (serverCpuS ?? 0) + (postgresCpuS ?? 0);
  return {
    target: target.name,
    ...{ load, serverCpuS, postgresCpuS },
    busyCores: busyS / seconds,
    otherCores: Math.max(0, busyS - ownS) / seconds,
  };
}

/**
 * Runs all targets in turn, each round in another order: what drifts on the machine meets them all
 * alike.
 */
export async function runRounds(
  stage: Stage,
  client: LoadClient,
  targets: readonly Target[],
  rounds: number,
  options: RunOptions,
): Promise<AccessRun[][]> {
  const done: AccessRun[][] = [];
  for (let round = 0; round < rounds; round += 1) {
    const first = round % targets.length;
    const order = [...targets.slice(first), ...targets.slice(0, first)];
    const runs: AccessRun[] = [];
    for (const target of order) runs.push(await runOnce(stage, client, target, options));
    done.push(runs);
  }
  return done;
}

/** What the rounds say of one target; ratios are to the bare twin in the same round. */
export interface TargetSummary {
  readonly target: TargetName;
  /** Median of the rounds. */
  readonly perS: number;
  readonly ratio: number;
  readonly ratioMin: number;
  readonly ratioMax: number;
  /** The same for requests per CPU second of the answering process: free of what others take. */
  readonly cpuRatio: number | null;
  /** CPU µs a request, medians: of the answering process, of PostgreSQL, of the load client. */
  readonly serverMicros: number | null;
  readonly postgresMicros: number | null;
  readonly clientMicros: number;
  readonly busyCores: number;
  readonly otherCores: number;
  /** Requests that were not answered with 200, over all rounds. */
  readonly failed: number;
}

export function summarise(
  rounds: readonly (readonly AccessRun[])[],
  target: TargetName,
): TargetSummary {
  const pairs = rounds.map((runs) => ({
    own: runs.find((run) => run.target === target)!,
    bare: runs.find((run) => run.target === 'bare')!,
  }));
  const ratios = pairs.map(({ own, bare }) => own.load.perS / bare.load.perS);
  const micros = (of: (run: AccessRun) => number | null) => (run: AccessRun) => {
    const seconds = of(run);
    return seconds === null ? null : (seconds * 1e6) / run.load.ok;
  };
  const serverMicros = micros((run) => run.serverCpuS);
  const postgresMicros = micros((run) => run.postgresCpuS);
  const clientMicros = micros((run) => run.load.cpuS);
  const own = pairs.map((pair) => pair.own);
  return {
    target,
    perS: median(own.map(({ load }) => load.perS)),
    ratio: median(ratios),
    ratioMin: Math.min(...ratios),
    ratioMax: Math.max(...ratios),
    cpuRatio: medianOfKnown(
      pairs.map((pair) => {
        const [mine, bares] = [serverMicros(pair.own), serverMicros(pair.bare)];
        return mine === null || bares === null ? null : bares / mine;
      }),
    ),
    serverMicros: medianOfKnown(own.map(serverMicros)),
    postgresMicros: medianOfKnown(own.map(postgresMicros)),
    clientMicros: medianOfKnown(own.map(clientMicros)) ?? 0,
    busyCores: median(own.map(({ busyCores }) => busyCores)),
    otherCores: median(own.map(({ otherCores }) => otherCores)),
    failed: own.reduce((sum, run) => sum + failedOf(run.load), 0),
  };
}

function medianOfKnown(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : median(known);
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before;
}
