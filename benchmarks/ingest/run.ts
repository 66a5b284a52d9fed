import type { LoadClient } from '../http-load/load.ts';
import type { HttpLoadReport } from '../http-load/plan.ts';
import { busySeconds, cpuSecondsOf } from '../proc-stat.ts';
import type { Stage } from './stage.ts';
import type { Target, TargetName } from './targets.ts';

/** One run of the load client against one target, and what it took of the machine. */
export interface IngestRun {
  readonly target: TargetName;
  readonly pills: number;
  readonly pillsPerS: number;
  readonly load: HttpLoadReport;
  /** CPU seconds of the process that answered; null where they cannot be read. */
  readonly serverCpuS: number | null;
  /** Null as well when the broker is another machine's. */
  readonly brokerCpuS: number | null;
  /** Cores that were busy on average, with everything that ran on the machine. */
  readonly busyCores: number;
  /** Of these, what neither server, broker nor client took: idling engines, and strangers. */
  readonly otherCores: number;
}

const SYMBOLS = Array.from({ length: 50 }, (_, i) => `BENCH.${i}`);
let runs = 0;

/** Runs the load client once. @param perS requests a second, open loop; null = closed loop */
export async function runOnce(
  { servers, brokerPid }: Stage,
  client: LoadClient,
  target: Target,
  { seconds, perS }: { readonly seconds: number; readonly perS: number | null },
): Promise<IngestRun> {
  const { pid, port } = servers[target.process];
  const { connections, pillsPerRequest } = target;
  runs += 1;
  // A pill that was sent before would be answered from memory: each run has names of its own.
  const run = `b${Date.now().toString(36)}${runs}`;
  const asked = { kind: 'write', symbols: SYMBOLS, run, pills: pillsPerRequest } as const;
  const read = () => ({
    server: cpuSecondsOf(pid),
    broker: cpuSecondsOf(brokerPid),
    busy: busySeconds(),
    at: performance.now(),
  });
  const before = read();
  const load = await client.run({ port, asked, connections, seconds, perS });
  const after = read();
  const serverCpuS = difference(after.server, before.server);
  const brokerCpuS = difference(after.broker, before.broker);
  const wall = (after.at - before.at) / 1_000;
  const busyS = after.busy - before.busy;
  const ownS = load.cpuS + (serverCpuS ?? 0) + (brokerCpuS ?? 0);
  return {
    target: target.name,
    pills: load.ok * pillsPerRequest,
    pillsPerS: load.perS * pillsPerRequest,
    ...{ load, serverCpuS, brokerCpuS },
    busyCores: busyS / wall,
    otherCores: Math.max(0, busyS - ownS) / wall,
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
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
  onRun: (run: IngestRun, round: number) => void = () => undefined,
): Promise<IngestRun[][]> {
  const done: IngestRun[][] = [];
  for (let round = 0; round < rounds; round += 1) {
    const first = round % targets.length;
    const runsOfRound: IngestRun[] = [];
    for (const target of [...targets.slice(first), ...targets.slice(0, first)]) {
      const run = await runOnce(stage, client, target, { seconds, perS: null });
      onRun(run, round);
      runsOfRound.push(run);
    }
    done.push(runsOfRound);
  }
  return done;
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before;
}
