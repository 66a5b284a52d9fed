import { runMigrations } from 'graphile-worker';
import { type Kysely, sql } from 'kysely';
import { schemaName } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';

/** Payload of the one kind of job: an endpoint whose deliveries are due. */
export interface DrainJob {
  readonly endpoint: string;
}

/** Schema of the job library's tables, beside ours. */
export function queueSchema(namespace: string): string {
  return `${schemaName(namespace)}_jobs`;
}

/** Makes or updates the tables of the queue. @throws what the database says */
export async function migrateQueue(url: string, namespace: string): Promise<void> {
  await runMigrations({ connectionString: url, schema: queueSchema(namespace) });
}

/**
 * Has the deliveries of these endpoints drained when the first one is due. Called in the
 * transaction that wrote them, so that none waits unseen.
 */
export async function wakeEndpoints(
  db: Kysely<Tables>,
  endpointIds: readonly string[],
): Promise<void> {
  if (endpointIds.length === 0) return;
  await sql`SELECT wake_webhook_endpoints(${[...endpointIds]}::text[])`.execute(db);
}
