import { newId } from '../../../domain/access/id.ts';
import { readPepper } from '../../../domain/access/pepper.ts';
import { createSeal } from '../../../domain/access/sealing.ts';
import type { Tier } from '../../../domain/access/tiers.ts';
import type { EventType } from '../../../domain/webhooks/events/event-catalogue.ts';
import { newSecret } from '../../../domain/webhooks/secrets/secret.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../../testing/accounts.ts';
import { createNamespace } from '../../../testing/namespace.ts';
import { openPillWriter } from '../../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openWebhookReceiver } from './webhook-receiver.ts';

/** An endpoint that a test created by inserting its rows. */
export interface TestEndpoint {
  readonly id: string;
  /** Path at the receiver. */
  readonly path: string;
  readonly secret: string;
}

export interface TestEndpointOptions {
  readonly account?: TestAccount;
  /** Instead of the fixture's receiver. */
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

export type WebhookFixture = Awaited<ReturnType<typeof openWebhookFixture>>;

/** Real engines, a receiver, an account; dispatchers are started by tests. */
export async function openWebhookFixture() {
  const namespace = await createNamespace();
  const writer = await openPillWriter(namespace);
  const db = openTestDatabase(namespace);
  const receiver = await openWebhookReceiver();
  const processes: TestProcess[] = [];
  const seal = createSeal(readPepper(namespace.env.KEY_PEPPER_FILE!));
  const account = await createTestAccount(db, namespace, { tier: 'institutional' });
  const env: Readonly<Record<string, string>> = {
    ...namespace.env,
    WEBHOOK_ALLOW_LOOPBACK: 'true',
  };

  /** Waits until every dispatcher knows every endpoint. */
  const waitUntilKnown = async () => {
    for (const { child, opsUrl } of processes) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      await waitFor('a dispatcher to know the endpoint', async () => {
        // Other tests of the file may add endpoints meanwhile.
        const { count } = await db
          .selectFrom('webhook_endpoints')
          .select(({ fn }) => fn.countAll<string>().as('count'))
          .executeTakeFirstOrThrow();
        const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
        return new RegExp(`^pillole_webhook_endpoints ${count}$`, 'm').test(metrics);
      });
    }
  };

  return {
    ...{ namespace, db, receiver, account, env },
    newAccount: (tier: Tier | null = 'institutional') => createTestAccount(db, namespace, { tier }),
    /** Waits until running dispatchers know the endpoint. */
    async addEndpoint(options: TestEndpointOptions = {}): Promise<TestEndpoint> {
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
      await waitUntilKnown();
      return { id, path, secret: secret.text };
    },
    /** Starts a dispatcher, and waits until it has its partitions. */
    async start(extra: Readonly<Record<string, string>> = {}): Promise<TestProcess> {
      const started = await startProcess('pipelines/main.js', ['webhooks'], { ...env, ...extra });
      processes.push(started);
      await started.ready();
      return started;
    },
    /** @returns cursors, in the order given */
    async write(pills: readonly PillRecord[]): Promise<string[]> {
      const acks = await writer.write(pills);
      return acks.map(({ partition, offset }) => formatCursor(partition, offset));
    },
    /** Waits until a path has received all these pills. */
    async waitForPills(
      path: string,
      cursors: readonly string[],
      timeoutMs?: number,
    ): Promise<void> {
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
    async close(): Promise<void> {
      if (process.env.SHOW) process.stderr.write(processes.map((one) => one.output()).join('\n'));
      for (const one of processes) await one.kill();
      await receiver.close();
      await writer.close();
      await db.destroy();
    },
  };
}
