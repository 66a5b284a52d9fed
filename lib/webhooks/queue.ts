import { runMigrations } from 'graphile-worker';
import { type Kysely, sql } from 'kysely';
import { silentLog } from '../log.ts';
import { openDatabase, schemaName } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';

/** Waiting for another process that makes them takes its time. */
const TIMEOUTS = { connectMs: 2_000, statementMs: 20_000 } as const;

/** Payload of the one kind of job: an endpoint whose deliveries are due. */
export interface DrainJob {
  readonly endpoint: string;
}

/** Schema of the job library's tables, beside ours. */
export function queueSchema(namespace: string): string {
  return `${schemaName(namespace)}_jobs`;
}

/**
 * Makes or updates the tables of the queue, under a lock: two that the library makes together fail.
 * @throws what the database says
 */
export async function migrateQueue(url: string, namespace: string): Promise<void> {
  const schema = queueSchema(namespace);
  const db = openDatabase({
    ...{ url, namespace, name: 'migrate-queue', log: silentLog, connectionsMax: 1 },
    timeouts: TIMEOUTS,
  });
  try {
    await db.transaction().execute(async (tx) => {
      await sql`SELECT pg_advisory_xact_lock(hashtext(${`queue ${schema}`}))`.execute(tx);
      await runMigrations({ connectionString: url, schema });
    });
  } finally {
    await db.destroy();
  }
}

/**
 * Has the deliveries of these endpoints drained when the first one is due. Called in the
 * transaction that wrote them, so that none waits unseen.
 * @param options notBeforeS s from now, at the earliest
 */
export async function wakeEndpoints(
  db: Kysely<Tables>,
  endpointIds: readonly string[],
  { notBeforeS = 0 }: { readonly notBeforeS?: number } = {},
): Promise<void> {
  if (endpointIds.length === 0) return;
  await sql`SELECT wake_webhook_endpoints(${[...endpointIds]}::text[],
    now() + make_interval(secs => ${notBeforeS}))`.execute(db);
}
