import { sql } from 'kysely';
import type { Log } from '../../lib/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { WebhookMessage } from '../../lib/webhooks/message.ts';
import { wakeEndpoints } from '../../lib/webhooks/queue.ts';

import type { Listener } from './audience.ts';
import { disableEndpoint } from './failing.ts';
import { LIMITS } from './limits.ts';
import type { AttemptVerdict } from './verdict.ts';

type Failure = Extract<AttemptVerdict, { kind: 'failed' }>;

/** What attempts say of an endpoint, and what follows for it. */
export interface Health {
  succeeded(listener: Listener, message: WebhookMessage): void;
  failed(listener: Listener, failure: Failure): void;
  /** Waits for what is being written. */
  close(): Promise<void>;
}

/** What is not written because the database is away is written with the next attempt. */
export function createHealth(db: Database, log: Log): Health {
  const writing = new Set<Promise<unknown>>();
  const write = (what: Promise<unknown>) => {
    const done = what
      .catch((error) => log.warn({ err: error }, 'the state of an endpoint was not written'))
      .finally(() => writing.delete(done));
    writing.add(done);
  };

  return {
    succeeded(listener, message) {
      const wasFailing = listener.failingSinceMs !== undefined;
      listener.breaker.succeeded();
      listener.failingSinceMs = undefined;
      if (wasFailing) write(recover(db, listener.id));
      if (message.type === 'endpoint.test') write(enable(db, listener));
    },
    failed(listener, failure) {
      if (failure.reason === 'gone') {
        write(disableEndpoint(db, listener.id, 'gone', failure));
        return;
      }
      const isResting = listener.breaker.failed(performance.now(), failure.retryAfterS);
      const isFirst = listener.failingSinceMs === undefined;
      if (!isFirst && !isResting) return;
      listener.failingSinceMs ??= Date.now();
      const restS = (listener.breaker.restingUntilMs() - performance.now()) / 1_000;
      write(
        sql`UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, now()),
              resting_until = CASE WHEN ${isResting} THEN
                greatest(resting_until, now() + make_interval(secs => ${Math.max(0, restS)}))
                ELSE resting_until END
            WHERE id = ${listener.id}`.execute(db),
      );
    },
    async close() {
      await Promise.all(writing);
    },
  };
}

/**
 * It answers again: what waits for a later attempt is due at once. What is on its way keeps its
 * lease, which is shorter than any later attempt would be.
 */
async function recover(db: Database, endpointId: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await tx
      .updateTable('webhook_endpoints')
      .set({ failing_since: null, resting_until: null })
      .where('id', '=', endpointId)
      .execute();
    await sql`UPDATE webhook_deliveries SET next_at = now()
      WHERE endpoint_id = ${endpointId} AND status = 'waiting'
        AND next_at > now() + make_interval(secs => ${LIMITS.leaseS})`.execute(tx);
    await wakeEndpoints(tx, [endpointId]);
  });
}

/** The challenge was answered. Not if the URL has changed since: then there is another one. */
async function enable(db: Database, { id, challenge }: Listener): Promise<void> {
  await db
    .updateTable('webhook_endpoints')
    .set({ status: 'enabled', disabled_reason: null })
    .where('id', '=', id)
    .where('challenge', '=', challenge)
    .where('status', '=', 'pending')
    .execute();
}
