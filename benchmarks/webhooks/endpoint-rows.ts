import { sql } from 'kysely';
import { newId } from '../../lib/access/id.ts';
import { silentLog } from '../../lib/log.ts';
import { openDatabase, schemaName } from '../../lib/postgres/database.ts';
import { queueSchema } from '../../lib/webhooks/queue.ts';
import { createSeal } from '../../lib/webhooks/sealing.ts';
import { newSecret } from '../../lib/webhooks/secret.ts';

/** An endpoint that was made. */
export interface MadeEndpoint {
  readonly id: string;
  readonly secret: string;
}

/** What waits in PostgreSQL for an attempt. */
export interface WaitingRows {
  readonly messages: number;
  readonly pills: number;
  /** Messages that wait for over a second: first attempts did not keep up. */
  readonly overdue: number;
}

/** Endpoints by their rows: enabled at once, on all pills, for one institutional account. */
export interface EndpointRows {
  add(urls: readonly string[]): Promise<MadeEndpoint[]>;
  /** What waits for them is deleted too. */
  remove(ids: readonly string[]): Promise<void>;
  waiting(): Promise<WaitingRows>;
  /** Removes the benchmark's schemas. */
  close(): Promise<void>;
}

/** Messages a second of one endpoint: above what is measured. */
const RATE_PER_S = 1_000;
const MAX_AGE_S = 3_600;

export function openEndpointRows(url: string, namespace: string, pepper: Buffer): EndpointRows {
  const db = openDatabase({ url, namespace, name: 'bench', log: silentLog });
  const seal = createSeal(pepper);
  return {
    async add(urls) {
      const { account_id } = await db
        .selectFrom('subscriptions')
        .select('account_id')
        .where('tier', '=', 'institutional')
        .executeTakeFirstOrThrow();
      const made = urls.map((target) => ({ id: newId('whe'), target, secret: newSecret() }));
      await db.transaction().execute(async (tx) => {
        const endpoints = made.map(({ id, target }) => ({
          ...{ id, account_id, url: target, event_types: ['pill.published'] },
          ...{ rate_per_s: RATE_PER_S, max_age_s: MAX_AGE_S },
          ...{ status: 'enabled' as const, challenge: newId('chl') },
        }));
        await tx.insertInto('webhook_endpoints').values(endpoints).execute();
        const secrets = made.map(({ id, secret }) => ({
          ...{ endpoint_id: id, account_id, sealed: seal.seal(secret.bytes, id) },
        }));
        await tx.insertInto('webhook_secrets').values(secrets).execute();
      });
      return made.map(({ id, secret }) => ({ id, secret: secret.text }));
    },
    async remove(ids) {
      if (ids.length === 0) return;
      await db.deleteFrom('webhook_endpoints').where('id', 'in', ids).execute();
    },
    async waiting() {
      const { rows } = await sql<Record<keyof WaitingRows, string>>`
        SELECT count(*) AS messages, coalesce(sum(pills), 0) AS pills,
          count(*) FILTER (WHERE created_at < now() - interval '1 second') AS overdue
        FROM webhook_deliveries WHERE status = 'waiting'`.execute(db);
      const { messages, pills, overdue } = rows[0]!;
      return { messages: Number(messages), pills: Number(pills), overdue: Number(overdue) };
    },
    async close() {
      const schemas = [queueSchema(namespace), schemaName(namespace)];
      for (const schema of schemas) {
        await sql`DROP SCHEMA IF EXISTS ${sql.id(schema)} CASCADE`
          .execute(db)
          .catch(() => undefined);
      }
      await db.destroy();
    },
  };
}
