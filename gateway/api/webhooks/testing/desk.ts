import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { sql } from 'kysely';
import { expect } from 'vitest';
import { databaseName, openClickHouse } from '../../../../lib/clickhouse.ts';
import type { Database } from '../../../../lib/postgres/database.ts';
import { openTestDatabase } from '../../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../../lib/testing/namespace.ts';
import { startProcess, type TestProcess } from '../../../../lib/testing/process.ts';
import { waitFor } from '../../../../lib/testing/wait.ts';
import { type AttemptRow, insertAttempts } from '../../../../lib/webhooks/attempts.ts';
import { queueSchema } from '../../../../lib/webhooks/queue.ts';
import { type Customer, createCustomer } from '../../testing/customer.ts';

/** What an endpoint is made of where nothing else matters; the URL holds what logs must not. */
export const WANTED = {
  url: 'http://127.0.0.1:9/hook?token=in-the-url',
  event_types: ['pill.published'],
};

export interface Made {
  readonly endpoint: { readonly id: string };
  readonly secret: string;
}

/** An API, its database, and customers with endpoints. */
export interface Desk {
  readonly namespace: Namespace;
  readonly db: Database;
  readonly api: TestProcess;
  /** A new one that has this tier already. */
  customerOf(tier: string): Promise<Customer>;
  /** Somebody who is not signed in, by default at the first API. */
  stranger(name: string, at?: string): Customer;
  make(customer: Customer, more?: object): Promise<Made>;
  /** As the dispatcher does once the challenge was answered. */
  enable(endpointId: string): Promise<void>;
  rowsOf(endpointId: string): ReturnType<typeof readRows>;
  /** The job that has the deliveries of an endpoint drained. */
  isWoken(endpointId: string): Promise<boolean>;
  auditOf(customer: Customer): Promise<readonly { action: string; target: string }[]>;
  log(rows: readonly AttemptRow[]): Promise<void>;
  /** Starts a further API. @returns its address */
  startApi(env: Readonly<Record<string, string>>): Promise<string>;
  close(): Promise<void>;
}

export async function openDesk(): Promise<Desk> {
  const namespace = await createNamespace();
  const db = openTestDatabase(namespace);
  const outbox = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
  const apis: TestProcess[] = [];
  let customers = 0;

  const startApi: Desk['startApi'] = async (env) => {
    const port = await getPort();
    const url = `http://127.0.0.1:${port}`;
    const own = { API_PORT: String(port), PUBLIC_URL: url, MAIL_OUTBOX: outbox };
    const more = { WEBHOOK_ALLOW_LOOPBACK: 'true', LOG_LEVEL: 'debug', ...env };
    const api = await startProcess('gateway/api/main.js', [], {
      ...{ ...namespace.env, ...own, ...more },
    });
    apis.push(api);
    await api.ready();
    return url;
  };
  const close = async () => {
    await Promise.all(apis.map((api) => api.stop()));
    await db.destroy();
    await rm(outbox, { recursive: true, force: true });
  };
  const base = await startApi({}).catch(async (error) => {
    await close();
    throw error;
  });

  return {
    ...{ namespace, db, startApi, close, api: apis[0]! },
    stranger: (name, at = base) => createCustomer(at, outbox, name),
    async customerOf(tier) {
      customers += 1;
      const customer = createCustomer(base, outbox, `customer${customers}`);
      await customer.signUp();
      await customer.subscribe(tier);
      // A change of the tier is in force within a second, not at once.
      await waitFor('the tier to be in force', async () => {
        return (await customer.send('GET', '/api/account')).body.tier === tier;
      });
      return customer;
    },
    async make(customer, more = {}) {
      const made = await customer.send('POST', '/api/webhooks', { ...WANTED, ...more });
      expect(made.body).toMatchObject({ endpoint: { id: expect.stringMatching(/^whe_/) } });
      return made.body;
    },
    async enable(id) {
      const enabled = db.updateTable('webhook_endpoints').set({ status: 'enabled' });
      await enabled.where('id', '=', id).execute();
      await db.deleteFrom('webhook_deliveries').where('endpoint_id', '=', id).execute();
    },
    rowsOf: (id) => readRows(db, id),
    async isWoken(id) {
      const jobs = sql.id(queueSchema(namespace.name), 'jobs');
      const { rows } = await sql<{ n: string }>`
        SELECT count(*) AS n FROM ${jobs} WHERE key = ${`drain/${id}`}`.execute(db);
      return Number(rows[0]!.n) > 0;
    },
    async auditOf(customer) {
      const { body } = await customer.send('GET', '/api/account/audit?limit=200');
      return body.data.filter(({ action }: { action: string }) => action.startsWith('webhook.'));
    },
    async log(rows) {
      const { engines, name } = namespace;
      const database = databaseName(name);
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
