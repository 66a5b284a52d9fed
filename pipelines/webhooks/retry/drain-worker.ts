import { EventEmitter } from 'node:events';
import { type Logger as JobLogger, Logger, run, type WorkerEvents } from 'graphile-worker';
import { sql } from 'kysely';
import { type DrainJob, jobsSchema } from '../../../domain/webhooks/deliveries/drain-jobs.ts';
import type { Log } from '../../../lib/log/log.ts';
import { type Database, openPgPool } from '../../../lib/postgres/database.ts';
import { type Repetition, runEvery } from '../../../lib/timing/run-every.ts';
import type { WebhooksConfig } from '../config.ts';
import { LIMITS } from '../limits.ts';

const POLL_INTERVAL_MS = 2_000;
const HEARTBEAT_INTERVAL_MS = 1_000;
/** A worker without a heartbeat for this long is dead, and its jobs are freed. */
const DEAD_AFTER_S = 8;
const CONNECTIONS_MAX = 6;

/**
 * Runs the drain jobs. The library frees the jobs of a dead worker only after four hours, so workers
 * write heartbeats, and a worker that finds another's missing frees the jobs it held.
 * @throws any database error
 */
export async function startDrainWorker(
  { databaseUrl: url, namespace }: Pick<WebhooksConfig, 'databaseUrl' | 'namespace'>,
  deps: {
    readonly db: Database;
    readonly log: Log;
    drain(endpointId: string): Promise<void>;
    onFatal(error: Error): void;
  },
): Promise<Repetition> {
  const { db, log } = deps;
  const connectionsMax = CONNECTIONS_MAX;
  const pool = openPgPool({ url, namespace, name: 'webhooks-queue', log, connectionsMax });
  const events: WorkerEvents = new EventEmitter();
  const workers = new Set<string>();
  events.on('worker:create', ({ worker }) => workers.add(worker.workerId));

  const heartbeat = () => beat(db, namespace, workers, log);
  const start = () =>
    run({
      pgPool: pool,
      schema: jobsSchema(namespace),
      events,
      logger: jobLogger(log),
      concurrency: LIMITS.drainsMax,
      pollInterval: POLL_INTERVAL_MS,
      noHandleSignals: true,
      taskList: { drain: (payload) => deps.drain((payload as DrainJob).endpoint) },
    });
  let runner = await start();
  let isClosing = false;
  // The library's workers stop when any schema of this database is migrated: its notification does
  // not say which. Started again, they check whether their own schema is the right one.
  const running = (async () => {
    for (;;) {
      await runner.promise;
      if (isClosing) return;
      workers.clear();
      runner = await start();
      if (isClosing) await runner.stop();
    }
  })();
  running.catch(deps.onFatal);
  await heartbeat();
  const everyMs = HEARTBEAT_INTERVAL_MS;
  const beating = runEvery({ name: 'heartbeats of workers', everyMs, log, run: heartbeat });
  return {
    async close() {
      isClosing = true;
      // Throws if the runner has just stopped on its own.
      await runner.stop().catch(() => undefined);
      await beating.close();
      await sql`DELETE FROM webhook_workers WHERE worker = ANY (${[...workers]}::text[])`
        .execute(db)
        .catch(() => undefined);
      await pool.end();
    },
  };
}

/**
 * Writes the heartbeats of our workers, and frees the jobs of dead ones. A worker that was killed
 * before its first heartbeat is known only by the jobs that it holds.
 */
async function beat(
  db: Database,
  namespace: string,
  workers: ReadonlySet<string>,
  log: Log,
): Promise<void> {
  await sql`INSERT INTO webhook_workers (worker) SELECT unnest(${[...workers]}::text[])
    ON CONFLICT (worker) DO UPDATE SET seen_at = now()`.execute(db);
  const schema = sql.id(jobsSchema(namespace));
  const { rows } = await sql<{ worker: string }>`
    WITH before AS (SELECT now() - make_interval(secs => ${DEAD_AFTER_S}) AS at),
      silent AS (DELETE FROM webhook_workers WHERE seen_at < (SELECT at FROM before) RETURNING worker)
    SELECT worker FROM silent
    UNION
    SELECT locked_by FROM ${schema}.jobs
    WHERE locked_at < (SELECT at FROM before)
      AND locked_by NOT IN (SELECT worker FROM webhook_workers)`.execute(db);
  if (rows.length === 0) return;
  log.warn({ workers: rows.length }, 'freeing the jobs of dead workers');
  const dead = rows.map(({ worker }) => worker);
  await sql`SELECT ${schema}.force_unlock_workers(${dead}::text[])`.execute(db);
}

/** Only errors become warnings: the library logs every job. */
function jobLogger(log: Log): JobLogger {
  return new Logger(() => (level, message, meta) => {
    if (level === 'error') log.warn({ meta }, message);
    else if (level === 'warning') log.debug({ meta }, message);
  });
}
