import { sql, type Transaction } from 'kysely';
import type { Log } from '../../lib/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { wakeEndpoints } from '../../lib/webhooks/queue.ts';
import type { Listener } from './audience.ts';
import { disableEndpoint } from './failing.ts';
import { LIMITS } from './limits.ts';
import type { AttemptVerdict } from './verdict.ts';

type Failure = Extract<AttemptVerdict, { kind: 'failed' }>;

/** What attempts say of an endpoint, and what follows for it. */
export interface Health {
  /** @param challenge the one that the endpoint has answered; undefined = it was no test */
  succeeded(listener: Listener, challenge: string | undefined): void;
  failed(listener: Listener, failure: Failure): void;
  /** Waits for what is being written. */
  close(): Promise<void>;
}

/**
 * What is said of one endpoint is written in its order. A write that fails because the database is
 * away is made good by the next failure or success: what is known in memory is taken back.
 */
export function createHealth(db: Database, log: Log): Health {
  const writing = new Map<string, Promise<void>>();
  const write = (listener: Listener, what: () => Promise<unknown>, takeBack: () => void) => {
    const before = writing.get(listener.id) ?? Promise.resolve();
    const done: Promise<void> = before
      .then(what)
      .catch((error) => {
        takeBack();
        log.warn({ err: error }, 'the state of an endpoint was not written');
      })
      .then(() => {
        if (writing.get(listener.id) === done) writing.delete(listener.id);
      });
    writing.set(listener.id, done);
  };

  return {
    succeeded(listener, challenge) {
      const since = listener.failingSinceMs;
      const hadRested = listener.breaker.succeeded();
      listener.failingSinceMs = undefined;
      if (since !== undefined || hadRested) {
        const takeBack = () => {
          listener.failingSinceMs ??= since;
        };
        write(listener, () => recover(db, listener.id, hadRested), takeBack);
      }
      if (challenge !== undefined)
        write(listener, () => enable(db, listener.id, challenge), ignore);
    },
    failed(listener, failure) {
      if (failure.reason === 'gone') {
        write(listener, () => disableEndpoint(db, listener.id, 'gone', { last: failure }), ignore);
        return;
      }
      const isResting = listener.breaker.failed(performance.now(), failure.retryAfterS);
      const isFirst = listener.failingSinceMs === undefined;
      if (!isFirst && !isResting) return;
      listener.failingSinceMs ??= Date.now();
      const restS = Math.max(0, (listener.breaker.restingUntilMs() - performance.now()) / 1_000);
      const takeBack = () => {
        if (isFirst) listener.failingSinceMs = undefined;
      };
      write(listener, () => tellFailure(db, listener.id, isResting ? restS : 0), takeBack);
    },
    async close() {
      await Promise.all(writing.values());
    },
  };
}

function ignore(): void {}

/** @param restS no attempt for so long; 0 = it need not rest */
async function tellFailure(db: Database, endpointId: string, restS: number): Promise<void> {
  await sql`UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, now()),
      resting_until = CASE WHEN ${restS}::double precision > 0
        THEN greatest(resting_until, now() + make_interval(secs => ${restS})) ELSE resting_until END
    WHERE id = ${endpointId}`.execute(db);
}

/**
 * It answers again. After a rest what waits for a later attempt is due at once; what is on its way
 * keeps its lease, which is shorter than any later attempt would be. Without a rest other messages
 * went through all the while: one that fails by itself keeps to its schedule.
 */
async function recover(db: Database, endpointId: string, hadRested: boolean): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await tx
      .updateTable('webhook_endpoints')
      .set({ failing_since: null, resting_until: null })
      .where('id', '=', endpointId)
      .execute();
    if (!hadRested) return;
    await makeDue(tx, endpointId);
    await wakeEndpoints(tx, [endpointId]);
  });
}

/** The challenge was answered. Not if the URL has changed since: then there is another one. */
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
    await wakeEndpoints(tx, [endpointId]);
  });
}

async function makeDue(tx: Transaction<Tables>, endpointId: string): Promise<void> {
  await sql`UPDATE webhook_deliveries SET next_at = now()
    WHERE endpoint_id = ${endpointId} AND status = 'waiting'
      AND next_at > now() + make_interval(secs => ${LIMITS.leaseS})`.execute(tx);
}
