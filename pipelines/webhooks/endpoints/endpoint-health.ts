import { sql, type Transaction } from 'kysely';
import { wakeEndpoints } from '../../../domain/webhooks/deliveries/drain-jobs.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';
import { LIMITS } from '../limits.ts';
import type { AttemptFailure } from './attempt-result.ts';
import { disableEndpoint } from './failing-endpoints.ts';
import type { RegisteredEndpoint } from './registered-endpoint.ts';

export type EndpointHealth = ReturnType<typeof createEndpointHealth>;

/**
 * Turns results of attempts into the state of their endpoint, in memory and in PostgreSQL. Writes for
 * one endpoint keep their order. When a write fails because the database is away, the
 * state in memory is rolled back, so that the next failure or success writes it again.
 */
export function createEndpointHealth(db: Database, log: Log) {
  const writing = new Map<string, Promise<void>>();
  const write = (endpointId: string, work: () => Promise<unknown>, rollBack = () => {}) => {
    const before = writing.get(endpointId) ?? Promise.resolve();
    const done: Promise<void> = before
      .then(work)
      .catch((error) => {
        rollBack();
        log.warn({ err: error }, 'the state of an endpoint was not written');
      })
      .then(() => {
        if (writing.get(endpointId) === done) writing.delete(endpointId);
      });
    writing.set(endpointId, done);
  };

  return {
    /** @param challenge the one that the endpoint has answered; undefined = not a test */
    succeeded(endpoint: RegisteredEndpoint, challenge: string | undefined): void {
      const { id } = endpoint;
      const since = endpoint.failingSinceMs;
      const hadRested = endpoint.breaker.succeeded();
      endpoint.failingSinceMs = undefined;
      if (since !== undefined || hadRested) {
        const rollBack = () => {
          endpoint.failingSinceMs ??= since;
        };
        write(id, () => recordRecovery(db, id, hadRested), rollBack);
      }
      if (challenge !== undefined) write(id, () => enable(db, id, challenge));
    },
    failed(endpoint: RegisteredEndpoint, failure: AttemptFailure): void {
      const { id, breaker } = endpoint;
      if (failure.reason === 'gone') {
        write(id, () => disableEndpoint(db, id, 'gone', { last: failure }));
        return;
      }
      const isResting = breaker.failed(performance.now(), failure.retryAfterS);
      const isFirst = endpoint.failingSinceMs === undefined;
      if (!isFirst && !isResting) return;
      endpoint.failingSinceMs ??= Date.now();
      const restS = Math.max(0, (breaker.restingUntilMs() - performance.now()) / 1_000);
      const rollBack = () => {
        if (isFirst) endpoint.failingSinceMs = undefined;
      };
      write(id, () => recordFailure(db, id, isResting ? restS : 0), rollBack);
    },
    /** Waits for the writes under way. */
    async close(): Promise<void> {
      await Promise.all(writing.values());
    },
  };
}

/** @param restS no attempt for this long; 0 = no rest */
async function recordFailure(db: Database, endpointId: string, restS: number): Promise<void> {
  await sql`UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, now()),
      resting_until = CASE WHEN ${restS}::double precision > 0
        THEN greatest(resting_until, now() + make_interval(secs => ${restS})) ELSE resting_until END
    WHERE id = ${endpointId}`.execute(db);
}

/**
 * After a rest, messages that wait for a later attempt are due at once; messages in flight keep
 * their lease, which is shorter than any later attempt would be. Without a rest, other messages
 * were delivered meanwhile: a message that fails alone keeps its schedule.
 */
async function recordRecovery(db: Database, endpointId: string, hadRested: boolean): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await tx
      .updateTable('webhook_endpoints')
      .set({ failing_since: null, resting_until: null })
      .where('id', '=', endpointId)
      .execute();
    if (!hadRested) return;
    await makeDue(tx, endpointId);
  });
}

/** Enables a pending endpoint, unless its URL has changed since: then it has another challenge. */
async function enable(db: Database, endpointId: string, challenge: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('webhook_endpoints')
      .set({ status: 'enabled', disabled_reason: null })
      .where('id', '=', endpointId)
      .where('challenge', '=', challenge)
      .where('status', '=', 'pending')
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return;
    await makeDue(tx, endpointId);
  });
}

async function makeDue(tx: Transaction<Tables>, endpointId: string): Promise<void> {
  await sql`UPDATE webhook_deliveries SET next_at = now()
    WHERE endpoint_id = ${endpointId} AND status = 'waiting'
      AND next_at > now() + make_interval(secs => ${LIMITS.leaseS})`.execute(tx);
  await wakeEndpoints(tx, [endpointId]);
}
