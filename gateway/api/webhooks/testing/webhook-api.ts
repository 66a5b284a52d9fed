import { sql } from 'kysely';
import { expect } from 'vitest';
import {
  type AttemptRow,
  insertAttempts,
} from '../../../../domain/webhooks/deliveries/attempt-rows.ts';
import { jobsSchema } from '../../../../domain/webhooks/deliveries/drain-jobs.ts';
import {
  customersDatabaseName,
  openClickHouse,
} from '../../../../lib/clickhouse/clickhouse-client.ts';
import type { Database } from '../../../../lib/postgres/database.ts';
import { openTestDatabase } from '../../../../testing/accounts.ts';
import { waitFor } from '../../../../testing/wait.ts';
import { openAccountApi } from '../../testing/account-api.ts';
import type { Customer } from '../../testing/customer.ts';

/** Default settings of an endpoint; the URL contains a token that logs must not have. */
export const ENDPOINT_SETTINGS = {
  url: 'http://127.0.0.1:9/hook?token=in-the-url',
  event_types: ['pill.published'],
};

export interface CreatedEndpoint {
  readonly endpoint: { readonly id: string };
  readonly secret: string;
}

/** An API, its database, and customers with endpoints. */
export type WebhookApi = Awaited<ReturnType<typeof openWebhookApi>>;

export async function openWebhookApi() {
  const settings = { WEBHOOK_ALLOW_LOOPBACK: 'true', LOG_LEVEL: 'debug' };
  const accounts = await openAccountApi(settings);
  const { namespace, base, api, stranger, start: startApi } = accounts;
  const db = openTestDatabase(namespace);
  let customers = 0;
  return {
    namespace,
    base,
    db,
    api,
    stranger,
    startApi,
    async close(): Promise<void> {
      await accounts.close();
      await db.destroy();
    },
    /** A new customer with this tier. */
    async customerOf(tier: string): Promise<Customer> {
      customers += 1;
      const customer = await accounts.customer(`customer${customers}`, tier);
      // A change of the tier takes effect within a second, not at once.
      await waitFor('the tier to take effect', async () => {
        return (await customer.send('GET', '/api/account')).body.tier === tier;
      });
      return customer;
    },
    async createEndpoint(customer: Customer, more: object = {}): Promise<CreatedEndpoint> {
      const made = await customer.send('POST', '/api/webhooks', { ...ENDPOINT_SETTINGS, ...more });
      expect(made.body).toMatchObject({ endpoint: { id: expect.stringMatching(/^whe_/) } });
      return made.body;
    },
    /** Enables an endpoint as the dispatcher does after the challenge. */
    async enable(id: string): Promise<void> {
      const enabled = db.updateTable('webhook_endpoints').set({ status: 'enabled' });
      await enabled.where('id', '=', id).execute();
      await db.deleteFrom('webhook_deliveries').where('endpoint_id', '=', id).execute();
    },
    rowsOf: (id: string) => readRows(db, id),
    /** Whether the job that drains the deliveries of an endpoint is queued. */
    async isDrainQueued(id: string): Promise<boolean> {
      const jobs = sql.id(jobsSchema(namespace.name), 'jobs');
      const { rows } = await sql<{ n: string }>`
        SELECT count(*) AS n FROM ${jobs} WHERE key = ${`drain/${id}`}`.execute(db);
      return Number(rows[0]!.n) > 0;
    },
    async auditOf(
      customer: Customer,
    ): Promise<readonly Readonly<Record<'action' | 'target' | 'actor', string>>[]> {
      const { body } = await customer.send('GET', '/api/account/audit?limit=200');
      return body.data.filter(({ action }: { action: string }) => action.startsWith('webhook.'));
    },
    async log(rows: readonly AttemptRow[]): Promise<void> {
      const { engines, name } = namespace;
      const database = customersDatabaseName(name);
      const clickhouse = openClickHouse({ url: engines.clickhouseUrl, database });
      await insertAttempts(clickhouse, rows);
      await clickhouse.close();
    },
  };
}

function readRows(db: Database, endpointId: string) {
  return db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .orderBy('id')
    .execute();
}
