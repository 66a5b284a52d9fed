import { runMigrations } from 'graphile-worker';
import { type Kysely, sql } from 'kysely';
import { silentLog } from '../../../lib/log/log.ts';
import { MIGRATION_TIMEOUTS, openDatabase, schemaName } from '../../../lib/postgres/database.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';

/** Payload of the one kind of job: an endpoint whose deliveries are due. */
export interface DrainJob {
  readonly endpoint: string;
}

/** Schema of the job library's tables, beside ours. */
export function jobsSchema(namespace: string): string {
  return `${schemaName(namespace)}_jobs`;
}

/**
 * Creates or updates the tables of the queue under a lock: concurrent migrations of the library fail.
 * @throws any database error
 */
export async function migrateDrainJobs(url: string, namespace: string): Promise<void> {
  const schema = jobsSchema(namespace);
  const db = openDatabase({
    url,
    namespace,
    name: 'migrate-queue',
    log: silentLog,
    connectionsMax: 1,
    timeouts: MIGRATION_TIMEOUTS,
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
 * Schedules drains of the endpoints. Called in the transaction that wrote their deliveries, so that
 * none is overlooked. @param options notBeforeS earliest start, seconds from now
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
