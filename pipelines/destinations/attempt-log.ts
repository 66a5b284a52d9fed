import { type Insertable, sql } from 'kysely';
import type { DeliveryError } from '../../domain/destinations/destination-type.ts';
import { DESTINATION_LIMITS } from '../../domain/destinations/limits.ts';
import type { Log } from '../../lib/log/log.ts';
import { createCounter } from '../../lib/metrics/metrics.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { LIMITS } from './limits.ts';

const attemptsTotal = createCounter({
  name: 'pillole_destination_attempts_total',
  help: 'Attempts to deliver to destinations, by type and outcome.',
  labelNames: ['type', 'outcome'] as const,
});
const pillsTotal = createCounter({
  name: 'pillole_destination_pills_total',
  help: 'Pills delivered to destinations, repeats included, by type.',
  labelNames: ['type'] as const,
});

export interface AttemptEnd {
  readonly destinationId: string;
  readonly type: string;
  readonly began: Date;
  readonly pills: number;
  readonly bytes: number;
  /** undefined = delivered. */
  readonly error: DeliveryError | undefined;
}

type Row = Insertable<Tables['destination_attempts']>;

/** Rows that wait for PostgreSQL; further kinds of attempts are not listed meanwhile. */
const WAITING_ROWS_MAX = 1_000;

export type AttemptLog = ReturnType<typeof openAttemptLog>;

/** The attempts that owners see. Equal ones are one row, so a destination that is away fills no table. */
export function openAttemptLog(db: Database, log: Log) {
  const waiting = new Map<string, Row & { attempts: number; pills: number; bytes: number }>();

  const flush = async () => {
    if (waiting.size === 0) return;
    const rows = [...waiting.values()];
    waiting.clear();
    // Of a destination that was removed meanwhile nothing is listed.
    await sql`
      INSERT INTO destination_attempts
        (destination_id, at, outcome, reason, status, detail, attempts, pills, bytes, latency_ms)
      SELECT r.* FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS r(destination_id text,
        at timestamptz, outcome text, reason text, status int, detail text, attempts int,
        pills bigint, bytes bigint, latency_ms int)
      JOIN destinations d ON d.id = r.destination_id`.execute(db);
  };
  const flushing = runEvery({
    name: 'attempts of destinations',
    everyMs: LIMITS.attemptsFlushMs,
    log,
    run: flush,
  });
  const pruning = runEvery({
    name: 'old attempts of destinations',
    everyMs: LIMITS.pruneMs,
    jitter: 0.3,
    log,
    run: () => pruneAttempts(db),
  });
  return {
    add({ destinationId, type, began, pills, bytes, error }: AttemptEnd): void {
      const outcome = error === undefined ? 'delivered' : 'failed';
      attemptsTotal.inc({ type, outcome });
      if (error === undefined) pillsTotal.inc({ type }, pills);
      const { reason = null, status = null, message = null } = error ?? {};
      const latencyMs = Date.now() - began.getTime();
      const key = [destinationId, outcome, reason, status, message].join('\n');
      const same = waiting.get(key);
      if (same === undefined && waiting.size >= WAITING_ROWS_MAX) return;
      waiting.set(key, {
        destination_id: destinationId,
        at: same?.at ?? began,
        outcome,
        ...{ reason, status, detail: message },
        attempts: (same?.attempts ?? 0) + 1,
        pills: (same?.pills ?? 0) + pills,
        bytes: (same?.bytes ?? 0) + bytes,
        latency_ms: Math.max(same?.latency_ms ?? 0, latencyMs),
      });
    },
    async close(): Promise<void> {
      await Promise.all([flushing.close(), pruning.close()]);
      await flush().catch((error) => log.warn({ err: error }, 'the last attempts are not listed'));
    },
  };
}

async function pruneAttempts(db: Database): Promise<void> {
  const { attemptRowsMax, attemptDaysMax } = DESTINATION_LIMITS;
  await sql`
    DELETE FROM destination_attempts WHERE id IN (
      SELECT id FROM (
        SELECT id, at, row_number() OVER (PARTITION BY destination_id ORDER BY id DESC) AS n
        FROM destination_attempts
      ) ranked
      WHERE n > ${attemptRowsMax} OR at < now() - make_interval(days => ${attemptDaysMax})
      ORDER BY id LIMIT ${LIMITS.pruneRows})`.execute(db);
}
