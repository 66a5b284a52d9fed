import { sql } from 'kysely';
import { wakeEndpoints } from '../../../domain/webhooks/deliveries/drain-jobs.ts';
import { DELIVERY_LIMITS } from '../../../domain/webhooks/deliveries/stored-messages.ts';
import type { Log } from '../../../lib/log/log.ts';
import { createGauge } from '../../../lib/metrics/metrics.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { type Repetition, runEvery } from '../../../lib/timing/run-every.ts';
import type { EndpointRegistry } from '../endpoints/endpoint-registry.ts';
import { LIMITS } from '../limits.ts';

const INTERVAL_MS = 2_000;
const WOKEN_MAX = 1_000;
const PRUNED_MAX = 1_000;
/** Overdue messages that one round looks at. */
const OVERDUE_MAX = 10_000;
const PRUNE_INTERVAL_MS = 60_000;

const waitingGauge = createGauge({
  name: 'pillole_webhook_waiting_messages',
  help: 'Messages of all endpoints that wait for an attempt.',
});

/**
 * Counts waiting messages every two seconds, wakes endpoints with overdue messages (their worker
 * has died), takes over failures that other dispatchers have written, and deletes messages given up
 * long ago. Each task runs even if the others fail.
 */
export function createWaitingMessages(db: Database, log: Log) {
  let full: ReadonlySet<string> = new Set();
  const count = async () => {
    full = await countWaiting(db);
  };
  return {
    /** Whether more messages may wait for an endpoint, as counted a moment ago. */
    hasRoom: (endpointId: string) => !full.has(endpointId),
    start(endpoints: EndpointRegistry): Repetition {
      const every = (everyMs: number, name: string, run: () => Promise<void>) =>
        runEvery({ name, everyMs, log, jitter: 0.2, run });
      const tasks = [
        every(INTERVAL_MS, 'counts of waiting webhooks', count),
        every(INTERVAL_MS, 'overdue webhooks', () => wakeOverdue(db)),
        every(INTERVAL_MS, 'failing endpoints of other dispatchers', () =>
          takeOverFailures(db, endpoints),
        ),
        every(PRUNE_INTERVAL_MS, 'webhooks that were given up', () => prune(db)),
      ];
      return { close: async () => void (await Promise.all(tasks.map((task) => task.close()))) };
    },
  };
}

/** @returns endpoints for which no more messages may wait */
async function countWaiting(db: Database): Promise<ReadonlySet<string>> {
  // From the index alone: bodies are not read.
  const { rows } = await sql<Record<'endpoint_id' | 'messages' | 'bytes', string>>`
    SELECT endpoint_id, count(*) AS messages, sum(bytes) AS bytes
    FROM webhook_deliveries WHERE status = 'waiting' GROUP BY endpoint_id`.execute(db);
  waitingGauge.set(rows.reduce((sum, { messages }) => sum + Number(messages), 0));
  const full = rows.filter(
    ({ messages, bytes }) =>
      Number(messages) >= LIMITS.waitingMessagesMax || Number(bytes) >= LIMITS.waitingBytesMax,
  );
  return new Set(full.map(({ endpoint_id }) => endpoint_id));
}

async function wakeOverdue(db: Database): Promise<void> {
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
}

async function takeOverFailures(db: Database, endpoints: EndpointRegistry): Promise<void> {
  const { rows } = await sql<{ id: string; failing_since: Date; rests_s: number | null }>`
    SELECT id, failing_since,
      extract(epoch FROM resting_until - now())::double precision AS rests_s
    FROM webhook_endpoints WHERE failing_since IS NOT NULL`.execute(db);
  for (const { id, failing_since, rests_s: restsS } of rows) {
    const endpoint = endpoints.get(id);
    if (endpoint === undefined) continue;
    endpoint.failingSinceMs ??= failing_since.getTime();
    if (restsS !== null && restsS > 0) {
      endpoint.breaker.restUntil(performance.now() + restsS * 1_000);
    }
  }
}

async function prune(db: Database): Promise<void> {
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
}
