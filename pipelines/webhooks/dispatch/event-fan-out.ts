import { sql } from 'kysely';
import { wakeEndpoints } from '../../../domain/webhooks/deliveries/drain-jobs.ts';
import { EVENT_TYPES, type EventType } from '../../../domain/webhooks/events/event-catalogue.ts';
import { eventMessage } from '../../../domain/webhooks/events/webhook-message.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { type Repetition, runEvery } from '../../../lib/timing/run-every.ts';
import type { EndpointRegistry } from '../endpoints/endpoint-registry.ts';

const INTERVAL_MS = 500;
const EVENTS_MAX = 100;

/** Posts events of accounts to their endpoints, about half a second after they were raised. */
export function startEventFanOut(db: Database, endpoints: EndpointRegistry, log: Log): Repetition {
  const run = () => fanOutEvents(db, endpoints);
  return runEvery({ name: 'events of accounts', everyMs: INTERVAL_MS, log, run });
}

/**
 * One round: each event becomes a message to every endpoint that asked for its type, and is marked
 * as posted, in one transaction. Several dispatchers share the work. @throws any database error
 */
async function fanOutEvents(db: Database, endpoints: EndpointRegistry): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const { rows } = await sql<
      Record<'id' | 'account_id' | 'type' | 'created_us', string> & {
        readonly data: Readonly<Record<string, unknown>>;
      }
    >`
      UPDATE account_events SET posted_at = now() WHERE id IN (
        SELECT id FROM account_events WHERE posted_at IS NULL
        ORDER BY id LIMIT ${EVENTS_MAX} FOR UPDATE SKIP LOCKED)
      RETURNING id, account_id, type, data,
        (extract(epoch FROM created_at) * 1000000)::bigint AS created_us`.execute(tx);
    const woken = new Set<string>();
    for (const { id, account_id, type, data, created_us } of rows) {
      if (!isEventType(type)) continue;
      const message = eventMessage(`msg_event_${id}`, type, data, Number(created_us));
      const occurredS = message.occurredAt / 1e6;
      for (const endpoint of endpoints.forEvent(account_id, type)) {
        // An event about an endpoint goes to the account's other endpoints.
        if (data.endpoint === endpoint.id) continue;
        await sql`
          INSERT INTO webhook_deliveries
            (endpoint_id, message_id, event_type, body, occurred_at, next_at)
          SELECT id, ${message.id}, ${type}, ${message.body}, to_timestamp(${occurredS}), now()
          FROM webhook_endpoints
          WHERE id = ${endpoint.id} AND created_at <= to_timestamp(${occurredS})
          ON CONFLICT DO NOTHING`.execute(tx);
        woken.add(endpoint.id);
      }
    }
    await wakeEndpoints(tx, [...woken]);
  });
}

function isEventType(type: string): type is EventType {
  return (EVENT_TYPES as readonly string[]).includes(type);
}
