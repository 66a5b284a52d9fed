import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AccessRun,
  runOnce,
  runRounds,
  summarise,
  type Target,
  type TargetSummary,
} from './access/run.ts';
import { measureSizes, type SizeReport } from './access/sizes.ts';
import { type Stage, withStage } from './access/stage.ts';
import { LATENESS_P99_MAX_MICROS } from './end-to-end/plan.ts';
import { startLoadClient } from './http-load/load.ts';
import { failedOf } from './http-load/plan.ts';
import { describeMachine, type Machine } from './machine.ts';

export interface AccessOptions {
  readonly rounds: number;
  /** Length of each run of the closed loop. */
  readonly seconds: number;
  /** Load on each target before the first round that is not counted: V8 compiles what is hot. */
  readonly warmUpSeconds: number;
  /** Length of each run of the open loop. */
  readonly openSeconds: number;
  readonly connections: number;
  /** Rows of the table of keys, rising. */
  readonly sizes: readonly number[];
  /** Keys to look up at each size. */
  readonly lookUps: number;
  readonly say: (line: string) => void;
}

/** A run of the open loop at half of what the closed one reached. */
export interface HalfRateRun extends AccessRun {
  readonly perS: number;
  /** False where the client was late itself: then the figures measure it, not the service. */
  readonly valid: boolean;
}

export interface AccessResult {
  readonly benchmark: 'access';
  readonly at: string;
  readonly machine: Machine;
  readonly connections: number;
  readonly symbols: number;
  readonly seconds: number;
  readonly summaries: readonly TargetSummary[];
  readonly rounds: readonly (readonly AccessRun[])[];
  readonly halfRate: readonly HalfRateRun[];
  readonly sizes: readonly (SizeReport & { readonly summaries: readonly TargetSummary[] })[];
}

/** What the guarded route is to reach: of the bare one's requests a second, and µs. */
export const GOALS = { ratioMin: 0.6, p99MaxMicros: 5_000 } as const;

/** Calls without a daily limit are counted afterwards, four times a second. */
const COUNTED_AFTER_MS = 1_000;

/**
 * Measures what key, quota and limits cost a read: requests a second against the same route
 * without them, latency at half of that rate, and whether either grows with the table of keys.
 */
export function measureAccess(options: AccessOptions): Promise<AccessResult> {
  const machine = describeMachine();
  return withStage(options.say, (stage) => measureOn(stage, machine, options));
}

async function measureOn(
  stage: Stage,
  machine: Machine,
  options: AccessOptions,
): Promise<AccessResult> {
  const { connections, seconds, rounds: roundCount, say } = options;
  const closed = { connections, seconds, perS: null };
  const proKey = await stage.rows.addLiftedAccount('pro');
  const institutionalKey = await stage.rows.addLiftedAccount('institutional');
  const targets: readonly Target[] = [
    { name: 'bare', key: null },
    { name: 'pro', key: proKey.key },
    { name: 'institutional', key: institutionalKey.key },
  ];
  const client = startLoadClient();
  try {
    say(`warm-up, not counted: ${options.warmUpSeconds} s each`);
    if (options.warmUpSeconds > 0) {
      await runRounds(stage, client, targets, 1, { ...closed, seconds: options.warmUpSeconds });
    }
    say(`closed loop: ${connections} connections, ${roundCount} rounds of ${seconds} s each`);
    const rounds = await runRounds(stage, client, targets, roundCount, closed);
    const summaries = targets.map(({ name }) => summarise(rounds, name));
    for (const { target, perS, ratio } of summaries) {
      say(`  ${target}: ${Math.round(perS)} requests/s, ${ratio.toFixed(2)} × bare`);
    }
    const [pro, institutional] = [proKey.accountId, institutionalKey.accountId];
    await requireCounted(stage, rounds, { pro, institutional });

    const halfRate: HalfRateRun[] = [];
    for (const target of targets) {
      const { perS: reached } = summaries.find((summary) => summary.target === target.name)!;
      const perS = Math.round(reached / 2);
      say(`open loop, ${target.name}: ${perS} requests/s for ${options.openSeconds} s`);
      const open = { connections, seconds: options.openSeconds, perS };
      const run = await runOnce(stage, client, target, open);
      const valid = (run.load.lateness?.p99 ?? 0) <= LATENESS_P99_MAX_MICROS;
      halfRate.push({ ...run, perS, valid });
    }

    const sizes = await measureSizes(stage, client, {
      ...{ sizes: options.sizes, lookUps: options.lookUps, targets, say },
      rounds: Math.min(3, roundCount),
      run: closed,
      onlyKey: proKey,
      lookUpAccountId: institutionalKey.accountId,
    });
    return {
      benchmark: 'access',
      at: new Date().toISOString(),
      ...{ machine, connections, symbols: stage.symbols.length, seconds },
      ...{ summaries, rounds, halfRate },
      sizes: sizes.map((size) => ({
        ...size,
        summaries: targets.map(({ name }) => summarise(size.rounds, name)),
      })),
    };
  } finally {
    client.stop();
  }
}

/** A ratio to the bare route means nothing unless every call was counted. @throws if not */
async function requireCounted(
  { rows }: Stage,
  rounds: readonly (readonly AccessRun[])[],
  accounts: Readonly<Record<'pro' | 'institutional', string>>,
): Promise<void> {
  await sleep(COUNTED_AFTER_MS);
  for (const [tier, accountId] of Object.entries(accounts)) {
    const runs = rounds.flat().filter(({ target }) => target === tier);
    const asked = runs.reduce((sum, { load }) => sum + load.ok, 0);
    const used = await rows.used(accountId);
    if (used < asked) throw new Error(`${tier}: ${asked} calls, but ${used} were counted.`);
  }
}

/** Whether a result proves anything: every request was answered with 200, none sent too late. */
export function isProof({ rounds, halfRate, sizes }: AccessResult): boolean {
  const runs = [...rounds.flat(), ...halfRate, ...sizes.flatMap((size) => size.rounds.flat())];
  return (
    runs.every(({ load }) => failedOf(load) === 0) &&
    halfRate.every(({ valid }) => valid) &&
    sizes.every(({ failed }) => failed === 0)
  );
}
