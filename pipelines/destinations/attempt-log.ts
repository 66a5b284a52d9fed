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

type WaitingRow = Insertable<Tables['destination_attempts']> & {
  readonly attempts: number;
  readonly pills: number;
  readonly bytes: number;
  readonly latency_ms: number;
};

/** Rows that wait for PostgreSQL; further kinds of attempts are not listed meanwhile. */
const WAITING_ROWS_MAX = 1_000;

export type AttemptLog = ReturnType<typeof openAttemptLog>;

/** The attempts that owners see. Equal ones are one row, so a destination that is away fills no table. */
export function openAttemptLog(db: Database, log: Log) {
  const waiting = new Map<string, WaitingRow>();
  /** Joins the row with an equal one; above the bound, a row of a further kind is left out. */
  const wait = (key: string, row: WaitingRow) => {
    const same = waiting.get(key);
    if (same === undefined && waiting.size >= WAITING_ROWS_MAX) return;
    waiting.set(key, same === undefined ? row : joined(same, row));
  };

  const flush = async () => {
    if (waiting.size === 0) return;
    const taken = new Map(waiting);
    waiting.clear();
    try {
      await insertRows(db, [...taken.values()]);
    } catch (error) {
      for (const [key, row] of taken) wait(key, row);
      throw error;
    }
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
      wait(key, {
        destination_id: destinationId,
        at: began,
        outcome,
        ...{ reason, status, detail: message },
        ...{ attempts: 1, pills, bytes, latency_ms: latencyMs },
      });
    },
    async close(): Promise<void> {
      await Promise.all([flushing.close(), pruning.close()]);
      await flush().catch((error) => log.warn({ err: error }, 'the last attempts are not listed'));
    },
  };
}

/** One row for both, at the time of the first. */
function joined(first: WaitingRow, other: WaitingRow): WaitingRow {
  return {
    ...first,
    attempts: first.attempts + other.attempts,
    pills: first.pills + other.pills,
    bytes: first.bytes + other.bytes,
    latency_ms: Math.max(first.latency_ms, other.latency_ms),
  };
}

/** Rows of a destination that was removed meanwhile are left out. */
async function insertRows(db: Database, rows: readonly WaitingRow[]): Promise<void> {
  await sql`
    INSERT INTO destination_attempts
      (destination_id, at, outcome, reason, status, detail, attempts, pills, bytes, latency_ms)
    SELECT r.* FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS r(destination_id text,
      at timestamptz, outcome text, reason text, status int, detail text, attempts int,
      pills bigint, bytes bigint, latency_ms int)
    JOIN destinations d ON d.id = r.destination_id`.execute(db);
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
