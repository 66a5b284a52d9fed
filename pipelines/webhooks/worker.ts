import { EventEmitter } from 'node:events';
import { type Logger as JobLogger, Logger, run, type WorkerEvents } from 'graphile-worker';
import { sql } from 'kysely';
import type { Log } from '../../lib/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { openPlainPool } from '../../lib/postgres/plain-pool.ts';
import { repeat } from '../../lib/repeat.ts';
import { type DrainJob, queueSchema } from '../../lib/webhooks/queue.ts';
import { LIMITS } from './limits.ts';

const POLL_INTERVAL_MS = 2_000;
const BEAT_INTERVAL_MS = 1_000;
/** A worker without a sign of life for so long is dead: its jobs are freed. */
const DEAD_AFTER_S = 8;
const CONNECTIONS_MAX = 6;

export interface WorkerParts {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly db: Database;
  readonly log: Log;
  drain(endpointId: string): Promise<void>;
  onFatal(error: Error): void;
}

/**
 * Works on the queue of endpoints. The library frees the jobs of a worker that died only after four
 * hours, so workers give signs of life, and whoever finds one missing frees what it held.
 * @throws what the database says
 */
export async function startWorker(parts: WorkerParts): Promise<{ close(): Promise<void> }> {
  const { db, log, namespace } = parts;
  const pool = openPlainPool({
    ...{ url: parts.databaseUrl, namespace, name: 'webhooks-queue', log },
    connectionsMax: CONNECTIONS_MAX,
  });
  const events: WorkerEvents = new EventEmitter();
  const workers = new Set<string>();
  events.on('worker:create', ({ worker }) => workers.add(worker.workerId));

  const beat = async () => {
    await sql`INSERT INTO webhook_workers (worker) SELECT unnest(${[...workers]}::text[])
      ON CONFLICT (worker) DO UPDATE SET seen_at = now()`.execute(db);
    const { rows } = await sql<{ worker: string }>`
      DELETE FROM webhook_workers WHERE seen_at < now() - make_interval(secs => ${DEAD_AFTER_S})
      RETURNING worker`.execute(db);
    if (rows.length === 0) return;
    log.warn({ workers: rows.length }, 'jobs of dead workers are freed');
    const schema = sql.id(queueSchema(namespace));
    const dead = rows.map(({ worker }) => worker);
    await sql`SELECT ${schema}.force_unlock_workers(${dead}::text[])`.execute(db);
  };

  const start = () =>
    run({
      ...{ pgPool: pool, schema: queueSchema(namespace), events, logger: jobLogger(log) },
      ...{ concurrency: LIMITS.drainsMax, pollInterval: POLL_INTERVAL_MS, noHandleSignals: true },
      taskList: { drain: (payload) => parts.drain((payload as DrainJob).endpoint) },
    });
  let runner = await start();
  let isClosing = false;
  // The library's workers end by themselves when any schema of this database is migrated: its
  // notification does not say which. Started again, they look whether theirs is the right one.
  const running = (async () => {
    for (;;) {
      await runner.promise;
      if (isClosing) return;
      workers.clear();
      runner = await start();
      if (isClosing) await runner.stop();
    }
  })();
  running.catch(parts.onFatal);
  await beat();
  const beating = repeat({
    ...{ name: 'signs of life of workers', everyMs: BEAT_INTERVAL_MS, log },
    run: beat,
  });
  return {
    async close() {
      isClosing = true;
      // It throws where the runner has just ended by itself.
      await runner.stop().catch(() => undefined);
      await beating.close();
      await sql`DELETE FROM webhook_workers WHERE worker = ANY (${[...workers]}::text[])`
        .execute(db)
        .catch(() => undefined);
      await pool.end();
    },
  };
}

/** Errors alone as such: the library tells every job. */
function jobLogger(log: Log): JobLogger {
  return new Logger(() => (level, message, meta) => {
    if (level === 'error') log.warn({ meta }, message);
    else if (level === 'warning') log.debug({ meta }, message);
  });
}
