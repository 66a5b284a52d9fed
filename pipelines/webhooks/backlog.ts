import { sql } from 'kysely';
import type { Log } from '../../lib/log.ts';
import { createGauge } from '../../lib/metrics.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { type Repetition, repeat } from '../../lib/repeat.ts';
import { wakeEndpoints } from '../../lib/webhooks/queue.ts';
import type { Audience } from './audience.ts';
import { LIMITS } from './limits.ts';

const INTERVAL_MS = 2_000;
const WOKEN_MAX = 1_000;
const PRUNED_MAX = 1_000;
/** What was given up can be recovered for so long. */
const SETTLED_KEPT_DAYS = 30;

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
  readonly waiting: string;
  readonly bytes: string;
  readonly is_overdue: boolean;
}

interface FailingRow {
  readonly id: string;
  readonly failing_since: Date;
}

/**
 * Counts what waits every two seconds, wakes what is overdue (its worker has died), learns which
 * endpoints fail at other dispatchers, and deletes what was given up long ago.
 */
export function createBacklog(db: Database, log: Log): Backlog {
  let full: ReadonlySet<string> = new Set();

  const look = async (audience: Audience) => {
    const { rows } = await sql<BacklogRow>`
      SELECT endpoint_id, count(*) AS messages, sum(length(body)) AS bytes,
        count(*) FILTER (WHERE status = 'waiting') AS waiting,
        bool_or(status = 'waiting' AND next_at < now() - interval '2 seconds') AS is_overdue
      FROM webhook_deliveries GROUP BY endpoint_id`.execute(db);
    full = new Set(rows.filter(isFull).map(({ endpoint_id }) => endpoint_id));
    waitingGauge.set(rows.reduce((sum, { waiting }) => sum + Number(waiting), 0));
    const overdue = rows.filter(({ is_overdue }) => is_overdue).slice(0, WOKEN_MAX);
    await wakeEndpoints(
      db,
      overdue.map(({ endpoint_id }) => endpoint_id),
    );
    const failing = await sql<FailingRow>`
      SELECT id, failing_since FROM webhook_endpoints WHERE failing_since IS NOT NULL`.execute(db);
    for (const { id, failing_since } of failing.rows) {
      const listener = audience.get(id);
      if (listener !== undefined) listener.failingSinceMs ??= failing_since.getTime();
    }
    await sql`DELETE FROM webhook_deliveries WHERE id IN (
      SELECT id FROM webhook_deliveries WHERE status <> 'waiting'
        AND settled_at < now() - make_interval(days => ${SETTLED_KEPT_DAYS})
      LIMIT ${PRUNED_MAX} FOR UPDATE SKIP LOCKED)`.execute(db);
  };

  return {
    hasRoom: (endpointId) => !full.has(endpointId),
    start: (audience) =>
      repeat({
        ...{ name: 'backlog of webhooks', everyMs: INTERVAL_MS, log, jitter: 0.2 },
        run: () => look(audience),
      }),
  };
}

function isFull({ messages, bytes }: BacklogRow): boolean {
  return Number(messages) >= LIMITS.backlogMessagesMax || Number(bytes) >= LIMITS.backlogBytesMax;
}
