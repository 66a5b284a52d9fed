import { sql } from 'kysely';
import type { Log } from '../../lib/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { type Repetition, repeat } from '../../lib/repeat.ts';
import { EVENT_TYPES, type EventType } from '../../lib/webhooks/event-types.ts';
import { eventMessage } from '../../lib/webhooks/message.ts';
import { wakeEndpoints } from '../../lib/webhooks/queue.ts';
import type { Audience } from './audience.ts';

const INTERVAL_MS = 500;
const EVENTS_MAX = 100;

interface EventRow {
  readonly id: string;
  readonly account_id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly created_us: string;
}

/** Hands events of accounts to their endpoints, about half a second after they were raised. */
export function startEvents(db: Database, audience: Audience, log: Log): Repetition {
  return repeat({
    ...{ name: 'events of accounts', everyMs: INTERVAL_MS, log },
    run: () => postEvents(db, audience),
  });
}

/**
 * One round: each event becomes a message to every endpoint that wants it, and is marked, in one
 * transaction. Several dispatchers share the work. @throws what the database says
 */
export async function postEvents(db: Database, audience: Audience): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const { rows } = await sql<EventRow>`
      UPDATE account_events SET posted_at = now() WHERE id IN (
        SELECT id FROM account_events WHERE posted_at IS NULL
        ORDER BY id LIMIT ${EVENTS_MAX} FOR UPDATE SKIP LOCKED)
      RETURNING id, account_id, type, data,
        (extract(epoch FROM created_at) * 1000000)::bigint AS created_us`.execute(tx);
    const woken = new Set<string>();
    for (const { id, account_id, type, data, created_us } of rows) {
      if (!isEventType(type)) continue;
      const message = eventMessage(`msg_event_${id}`, type, data, Number(created_us));
      for (const listener of audience.forEvent(account_id, type)) {
        // What is wrong with an endpoint is told to the others.
        if (data.endpoint === listener.id) continue;
        await sql`
          INSERT INTO webhook_deliveries
            (endpoint_id, message_id, event_type, body, occurred_at, next_at)
          SELECT id, ${message.id}, ${type}, ${message.body},
            to_timestamp(${message.occurredAt / 1e6}), now()
          FROM webhook_endpoints
          WHERE id = ${listener.id} AND created_at <= to_timestamp(${message.occurredAt / 1e6})
          ON CONFLICT DO NOTHING`.execute(tx);
        woken.add(listener.id);
      }
    }
    await wakeEndpoints(tx, [...woken]);
  });
}

function isEventType(type: string): type is EventType {
  return (EVENT_TYPES as readonly string[]).includes(type);
}
