import { sql } from 'kysely';
import type { Log } from '../../lib/log.ts';
import { createGauge } from '../../lib/metrics.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { type Repetition, repeat } from '../../lib/repeat.ts';
import { DELIVERY_LIMITS } from '../../lib/webhooks/deliveries.ts';
import { wakeEndpoints } from '../../lib/webhooks/queue.ts';
import type { Audience } from './audience.ts';
import { LIMITS } from './limits.ts';

const INTERVAL_MS = 2_000;
const WOKEN_MAX = 1_000;
const PRUNED_MAX = 1_000;
/** Overdue messages that are looked at in one round. */
const OVERDUE_MAX = 10_000;
const PRUNE_INTERVAL_MS = 60_000;

const waitingGauge = createGauge({
  name: 'pillole_webhook_waiting_messages',
  help: 'Messages of all endpoints that wait for an attempt.',
});

/** What waits, by endpoint, as of a moment ago. */
export interface Backlog {
  /** Whether more may wait for an endpoint. */
  hasRoom(endpointId: string): boolean;
  start(audience: Audience): Repetition;
}

interface BacklogRow {
  readonly endpoint_id: string;
  readonly messages: string;
  readonly bytes: string;
}

interface FailingRow {
  readonly id: string;
  readonly failing_since: Date;
  readonly rests_s: number | null;
}

/**
 * Counts what waits every two seconds, wakes what is overdue (its worker has died), learns which
 * endpoints fail or rest at other dispatchers, and deletes what was given up long ago. Each does its
 * work whether the others can or not.
 */
export function createBacklog(db: Database, log: Log): Backlog {
  let full: ReadonlySet<string> = new Set();

  const count = async () => {
    // From the index alone: bodies are not read.
    const { rows } = await sql<BacklogRow>`
      SELECT endpoint_id, count(*) AS messages, sum(bytes) AS bytes
      FROM webhook_deliveries WHERE status = 'waiting' GROUP BY endpoint_id`.execute(db);
    full = new Set(rows.filter(isFull).map(({ endpoint_id }) => endpoint_id));
    waitingGauge.set(rows.reduce((sum, { messages }) => sum + Number(messages), 0));
  };

  const wake = async () => {
    const { rows } = await sql<{ endpoint_id: string }>`
      SELECT endpoint_id FROM (
        SELECT endpoint_id FROM webhook_deliveries
        WHERE status = 'waiting' AND next_at < now() - interval '2 seconds'
        ORDER BY next_at LIMIT ${OVERDUE_MAX}
      ) AS overdue GROUP BY endpoint_id LIMIT ${WOKEN_MAX}`.execute(db);
    await wakeEndpoints(
      db,
      rows.map(({ endpoint_id }) => endpoint_id),
    );
  };

  const learn = async (audience: Audience) => {
    const { rows } = await sql<FailingRow>`
      SELECT id, failing_since,
        extract(epoch FROM resting_until - now())::double precision AS rests_s
      FROM webhook_endpoints WHERE failing_since IS NOT NULL`.execute(db);
    for (const { id, failing_since, rests_s: restsS } of rows) {
      const listener = audience.get(id);
      if (listener === undefined) continue;
      listener.failingSinceMs ??= failing_since.getTime();
      if (restsS !== null && restsS > 0) {
        listener.breaker.restUntil(performance.now() + restsS * 1_000);
      }
    }
  };

  const prune = async () => {
    await sql`DELETE FROM webhook_deliveries WHERE id IN (
      SELECT id FROM webhook_deliveries WHERE status <> 'waiting'
        AND settled_at < now() - make_interval(days => ${DELIVERY_LIMITS.keptDays})
      LIMIT ${PRUNED_MAX} FOR UPDATE SKIP LOCKED)`.execute(db);
    await sql`DELETE FROM webhook_deliveries WHERE id IN (
      SELECT d.id FROM webhook_deliveries d JOIN (
        SELECT endpoint_id, count(*) - ${LIMITS.settledMessagesMax} AS surplus
        FROM webhook_deliveries WHERE status <> 'waiting'
        GROUP BY endpoint_id HAVING count(*) > ${LIMITS.settledMessagesMax} LIMIT 1
      ) o ON o.endpoint_id = d.endpoint_id
      WHERE d.status <> 'waiting' ORDER BY d.id LIMIT ${PRUNED_MAX})`.execute(db);
  };

  return {
    hasRoom: (endpointId) => !full.has(endpointId),
    start(audience) {
      const of = (name: string, everyMs: number, run: () => Promise<void>) =>
        repeat({ name, everyMs, log, jitter: 0.2, run });
      const repetitions = [
        of('counts of waiting webhooks', INTERVAL_MS, count),
        of('overdue webhooks', INTERVAL_MS, wake),
        of('failing endpoints of other dispatchers', INTERVAL_MS, () => learn(audience)),
        of('webhooks that were given up', PRUNE_INTERVAL_MS, prune),
      ];
      return { close: async () => void (await Promise.all(repetitions.map((one) => one.close()))) };
    },
  };
}

function isFull({ messages, bytes }: BacklogRow): boolean {
  return Number(messages) >= LIMITS.backlogMessagesMax || Number(bytes) >= LIMITS.backlogBytesMax;
}
