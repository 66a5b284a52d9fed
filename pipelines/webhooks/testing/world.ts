import { newId } from '../../../lib/access/id.ts';
import { readPepper } from '../../../lib/access/pepper.ts';
import type { Tier } from '../../../lib/access/tiers.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { openPillWriter, type PillWriter } from '../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import type { EventType } from '../../../lib/webhooks/event-types.ts';
import { createSeal } from '../../../lib/webhooks/sealing.ts';
import { newSecret } from '../../../lib/webhooks/secret.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { openReceiver, type Receiver } from './receiver.ts';

/** An endpoint that a test made by its rows alone. */
export interface TestEndpoint {
  readonly id: string;
  /** Of the receiver. */
  readonly path: string;
  readonly secret: string;
}

export interface TestEndpointOptions {
  readonly account?: TestAccount;
  /** Elsewhere than at the world's receiver. */
  readonly url?: string;
  readonly status?: 'pending' | 'enabled' | 'disabled';
  readonly eventTypes?: readonly EventType[];
  readonly symbols?: readonly string[];
  readonly minConfidence?: number;
  readonly minSpread?: number;
  readonly maxSpread?: number;
  readonly states?: readonly string[];
  readonly backfill?: boolean;
  readonly ratePerS?: number;
  readonly maxAgeS?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Real engines, a receiver, an account; dispatchers are started by tests. */
export interface WebhookWorld {
  readonly namespace: Namespace;
  readonly db: Database;
  readonly receiver: Receiver;
  readonly account: TestAccount;
  readonly env: Readonly<Record<string, string>>;
  newAccount(tier?: Tier | null): Promise<TestAccount>;
  /** Waits until running dispatchers know it. */
  addEndpoint(options?: TestEndpointOptions): Promise<TestEndpoint>;
  /** Starts a dispatcher; ready once it has its partitions. */
  start(env?: Readonly<Record<string, string>>): Promise<TestProcess>;
  /** @returns cursors, in the order given */
  write(pills: readonly PillRecord[]): Promise<string[]>;
  /** Waits until a path has got all these pills. */
  got(path: string, cursors: readonly string[], timeoutMs?: number): Promise<void>;
  close(): Promise<void>;
}

export async function openWebhookWorld(): Promise<WebhookWorld> {
  const namespace = await createNamespace();
  const writer: PillWriter = await openPillWriter(namespace);
  const db = openTestDatabase(namespace);
  const receiver = await openReceiver();
  const processes: TestProcess[] = [];
  const seal = createSeal(readPepper(namespace.env.KEY_PEPPER_FILE!));
  const account = await createTestAccount(db, namespace, { tier: 'institutional' });
  const env = { ...namespace.env, WEBHOOK_ALLOW_LOOPBACK: 'true' };

  /** Until every dispatcher knows every endpoint. */
  const known = async () => {
    const { count } = await db
      .selectFrom('webhook_endpoints')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .executeTakeFirstOrThrow();
    for (const { child, opsUrl } of processes) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      await waitFor('a dispatcher to know the endpoint', async () => {
        const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
        return new RegExp(`^pillole_webhook_endpoints ${count}$`, 'm').test(metrics);
      });
    }
  };

  return {
    ...{ namespace, db, receiver, account, env },
    newAccount: (tier = 'institutional') => createTestAccount(db, namespace, { tier }),
    async addEndpoint(options = {}) {
      const id = newId('whe');
      const path = `/${id}`;
      const secret = newSecret();
      const owner = (options.account ?? account).id;
      const { headers } = options;
      await db.transaction().execute(async (tx) => {
        await tx
          .insertInto('webhook_endpoints')
          .values({
            ...{ id, account_id: owner, url: options.url ?? `${receiver.url}${path}` },
            event_types: [...(options.eventTypes ?? ['pill.published'])],
            symbols: [...(options.symbols ?? [])],
            min_confidence: options.minConfidence ?? null,
            min_spread: options.minSpread ?? null,
            max_spread: options.maxSpread ?? null,
            states: [...(options.states ?? [])],
            backfill: options.backfill ?? false,
            headers:
              headers === undefined ? null : seal.seal(Buffer.from(JSON.stringify(headers)), id),
            rate_per_s: options.ratePerS ?? 1_000,
            max_age_s: options.maxAgeS ?? 3_600,
            status: options.status ?? 'enabled',
            challenge: newId('chl'),
          })
          .execute();
        await tx
          .insertInto('webhook_secrets')
          .values({ endpoint_id: id, account_id: owner, sealed: seal.seal(secret.bytes, id) })
          .execute();
      });
      receiver.trust(path, secret.text);
      await known();
      return { id, path, secret: secret.text };
    },
    async start(extra = {}) {
      const started = await startProcess('pipelines/main.js', ['webhooks'], { ...env, ...extra });
      processes.push(started);
      await started.ready();
      return started;
    },
    async write(pills) {
      const acks = await writer.write(pills);
      return acks.map(({ partition, offset }) => formatCursor(partition, offset));
    },
    async got(path, cursors, timeoutMs) {
      await waitFor(
        `${cursors.length} pills at ${path}`,
        () => {
          const seen = new Set(receiver.cursors(path));
          const missing = cursors.filter((cursor) => !seen.has(cursor));
          return missing.length === 0 || `${missing.length} missing, e.g. ${missing[0]}`;
        },
        timeoutMs,
      );
    },
    async close() {
      if (process.env.SHOW) process.stderr.write(processes.map((one) => one.output()).join('\n'));
      for (const one of processes) await one.kill();
      await receiver.close();
      await writer.close();
      await db.destroy();
    },
  };
}
