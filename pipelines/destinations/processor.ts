import { startPepperHolder } from '../../domain/access/pepper-holders.ts';
import { createSeal } from '../../domain/access/sealing.ts';
import { DESTINATION_TYPES } from '../../domain/destinations/catalogue.ts';
import type { Context } from '../../lib/kafka/log-context.ts';
import { createGauge } from '../../lib/metrics/metrics.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { openAttemptLog } from './attempt-log.ts';
import type { DestinationsConfig } from './config.ts';
import { createLeases, type KnownDestination } from './leases.ts';
import { LIMITS } from './limits.ts';
import { type Runner, type RunnerDeps, startRunner } from './runner.ts';

const CONNECTIONS_MAX = 6;
/** Longer without an answer of PostgreSQL, and the process is not ready. */
const SILENCE_MAX_MS = 10_000;

const runningGauge = createGauge({
  name: 'pillole_running_destinations',
  help: 'Destinations that this process delivers to.',
});
const failingGauge = createGauge({
  name: 'pillole_failing_destinations',
  help: 'Destinations of this process whose receiving system has failed since its last success.',
});

/**
 * Delivers pills to the destinations of Institutional accounts. Its steps, each second:
 * 1. read all destinations; pause those whose account lost the tier;
 * 2. renew the leases, and stop what is paused, removed, or has another owner;
 * 3. take changed settings and credentials over;
 * 4. take free destinations, each with a runner of its own.
 * A runner reads the log from its positions, judges like every consumer, and delivers pieces: the end
 * of a piece is written to PostgreSQL, the piece to the destination, then the position.
 */
export async function startDestinations(context: Context<DestinationsConfig>): Promise<void> {
  const { config, life } = context;
  const { namespace, databaseUrl: url, pepper } = config;
  const { log } = life;
  const bounds = { connectionsMax: CONNECTIONS_MAX };
  const db = openDatabase({ url, namespace, name: 'destinations', log, ...bounds });
  life.onStop('database', () => db.destroy());
  const holder = startPepperHolder({ db, pepper, kind: 'destinations', log });
  life.onStop('record of the pepper', holder.close);
  const attempts = openAttemptLog(db, log);
  life.onStop('attempts', attempts.close);
  const supervisor = createSupervisor({ context, db, seal: createSeal(pepper), attempts });
  let answeredAtMs = performance.now();
  let hasAnswered = false;
  const polling = runEvery({
    name: 'destinations',
    everyMs: LIMITS.pollMs,
    firstMs: 0,
    log,
    async run() {
      await supervisor.poll();
      answeredAtMs = performance.now();
      hasAnswered = true;
    },
  });
  life.onStop('destinations', async () => {
    await polling.close();
    await supervisor.close();
  });
  life.readyWhen(() =>
    hasAnswered && performance.now() - answeredAtMs < SILENCE_MAX_MS
      ? undefined
      : 'destinations cannot be read',
  );
}

/** The runners of this process. */
function createSupervisor(deps: RunnerDeps) {
  const { db } = deps;
  const { log } = deps.context.life;
  const leases = createLeases(db);
  const runners = new Map<string, Runner>();
  const lost = new Set<Runner>();

  const stop = async (id: string, runner: Runner) => {
    runners.delete(id);
    lost.delete(runner);
    await runner.stop();
    await runner.writeHealth().catch(() => undefined);
    await leases.release(runner.owner).catch((err) => log.warn({ err }, 'a lease is not released'));
  };
  const stopUnwanted = async (known: ReadonlyMap<string, KnownDestination>) => {
    const kept = await leases.renew([...runners.values()].map(({ owner }) => owner));
    const over = [...runners].filter(
      ([id, runner]) =>
        known.get(id)?.isWanted !== true || !kept.has(runner.owner) || lost.has(runner),
    );
    await Promise.all(over.map(([id, runner]) => stop(id, runner)));
  };
  const takeFree = async (known: ReadonlyMap<string, KnownDestination>) => {
    for (const [id, { row, isWanted, isFree }] of known) {
      const type = DESTINATION_TYPES.get(row.type);
      if (!isWanted || !isFree || runners.has(id) || type === undefined) continue;
      if (runners.size >= LIMITS.runningMax) return;
      const owner = await leases.take(id);
      if (owner === undefined) continue;
      const runner: Runner = startRunner(deps, type, row, {
        owner,
        onLost: () => lost.add(runner),
      });
      runners.set(id, runner);
      log.info({ destinationId: id }, 'a destination is delivered to');
    }
  };
  return {
    async poll(): Promise<void> {
      const known = await leases.read();
      await stopUnwanted(known);
      for (const [id, runner] of runners) {
        const { row } = known.get(id)!;
        if (row.version !== runner.version()) await runner.update(row);
        await runner.writeHealth();
      }
      await takeFree(known);
      runningGauge.set(runners.size);
      failingGauge.set([...runners.values()].filter((runner) => runner.isFailing()).length);
    },
    async close(): Promise<void> {
      await Promise.all([...runners].map(([id, runner]) => stop(id, runner)));
    },
  };
}
