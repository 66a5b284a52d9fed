import type { Cores } from '../cores.ts';
import { LATENESS_P99_MAX_MICROS } from '../end-to-end/plan.ts';
import { type LoadClient, startLoadClient } from '../http-load/load.ts';
import { failedOf } from '../http-load/plan.ts';
import { describeMachine, type Machine } from '../machine.ts';
import { summariseProfile } from '../profile/areas.ts';
import { profileDuring } from '../profile/inspect.ts';
import type { PillProfile } from '../profile/table.ts';
import { type IngestRun, runOnce, runRounds } from './run.ts';
import { type Stage, withStage } from './stage.ts';
import { summarise, type TargetSummary } from './summary.ts';
import { type Target, targetsWith } from './targets.ts';

export interface IngestOptions {
  readonly rounds: number;
  /** Length of each run of the closed loop. */
  readonly seconds: number;
  /** Load on each target before the first round that is not counted: V8 compiles what is hot. */
  readonly warmUpSeconds: number;
  /** Length of each run of the open loop. */
  readonly openSeconds: number;
  /** Length of each profile; 0 takes none. */
  readonly profileSeconds: number;
  readonly connections: number;
  readonly say: (line: string) => void;
}

/** A run of the open loop at half of what ours reached in the closed one. */
export interface HalfRateRun extends IngestRun {
  readonly perS: number;
  /** False where the client was late itself: then the figures measure it, not the service. */
  readonly valid: boolean;
}

export interface IngestResult {
  readonly benchmark: 'ingest';
  readonly at: string;
  readonly machine: Machine;
  readonly cores: Cores | null;
  readonly connections: number;
  readonly seconds: number;
  readonly summaries: readonly TargetSummary[];
  readonly rounds: readonly (readonly IngestRun[])[];
  readonly halfRate: readonly HalfRateRun[];
  readonly profiles: readonly PillProfile[];
}

/**
 * Measures what one ingest process takes on one core, beside a bare Fastify echo and a server that
 * sends to the log request by request; its latency at half of that rate, and where its time goes.
 */
export function measureIngest(options: IngestOptions): Promise<IngestResult> {
  const machine = describeMachine();
  return withStage(options.say, async (stage) => {
    const client = startLoadClient();
    try {
      return await measureOn(stage, client, machine, options);
    } finally {
      client.stop();
    }
  });
}

async function measureOn(
  stage: Stage,
  client: LoadClient,
  machine: Machine,
  options: IngestOptions,
): Promise<IngestResult> {
  const { connections, seconds, warmUpSeconds, openSeconds, profileSeconds, say } = options;
  const targets = targetsWith(connections);
  say(coresLine(stage.cores));
  if (warmUpSeconds > 0) {
    say(`warm-up, not counted: ${warmUpSeconds} s each`);
    await runRounds(stage, client, targets, { rounds: 1, seconds: warmUpSeconds });
  }
  say(`closed loop: ${connections} connections, ${options.rounds} rounds of ${seconds} s each`);
  const rounds = await runRounds(stage, client, targets, options, (run, round) => {
    const rate = `${Math.round(run.pillsPerS).toLocaleString('en')} pills/s`;
    say(`  round ${round + 1}, ${run.target}: ${rate}, ${failedOf(run.load)} failed`);
  });
  const summaries = targets.map(({ name }) => summarise(rounds, name));

  const halfRate: HalfRateRun[] = [];
  const ours = summaries.find(({ target }) => target === 'ours')!;
  const perS = Math.max(1, Math.round(ours.pillsPerS / 2));
  for (const target of targets.filter(({ name }) => name === 'echo' || name === 'ours')) {
    say(`open loop, ${target.name}: ${perS} pills/s for ${openSeconds} s`);
    const run = await runOnce(stage, client, target, { seconds: openSeconds, perS });
    const valid = (run.load.lateness?.p99 ?? 0) <= LATENESS_P99_MAX_MICROS;
    halfRate.push({ ...run, perS, valid });
  }

  // Last: from here on the inspectors are open.
  const profiles: PillProfile[] = [];
  for (const target of profileSeconds > 0 ? targets : []) {
    say(`profile of ${target.name}: ${profileSeconds} s`);
    profiles.push(await profileOf(stage, client, target, profileSeconds));
  }
  return {
    benchmark: 'ingest',
    at: new Date().toISOString(),
    ...{ machine, cores: stage.cores, connections, seconds },
    ...{ summaries, rounds, halfRate, profiles },
  };
}

async function profileOf(
  stage: Stage,
  client: LoadClient,
  target: Target,
  seconds: number,
): Promise<PillProfile> {
  const { pid, inspectPort } = stage.servers[target.process];
  const { profile, result } = await profileDuring(pid, inspectPort, () =>
    runOnce(stage, client, target, { seconds, perS: null }),
  );
  const { pills, serverCpuS } = result;
  const cpuMicros = serverCpuS === null ? null : serverCpuS * 1e6;
  return { name: target.name, pills, cpuMicros, ...summariseProfile(profile) };
}

/** Which process has which core: without this no figure here means anything. */
export function coresLine(cores: Cores | null): string {
  return cores === null
    ? 'server, load client and broker share all cores (two cores and taskset are needed to part them)'
    : `server on core ${cores.server}; load client, broker and all else on ${cores.others}`;
}

/** Whether a result proves anything: every request answered as it should, none sent too late. */
export function isProof({ rounds, halfRate }: IngestResult): boolean {
  return (
    [...rounds.flat(), ...halfRate].every(({ load }) => failedOf(load) === 0) &&
    halfRate.every(({ valid }) => valid)
  );
}
