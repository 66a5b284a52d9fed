import { sql, type Transaction } from 'kysely';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { WebhookMessage } from '../../lib/webhooks/message.ts';

/** Offsets of one partition, both included. */
export interface OffsetRange {
  readonly first: number;
  readonly last: number;
}

/** Offsets of a partition, with the name under which it was taken when they were read. */
export interface OwnedRange extends OffsetRange {
  readonly partition: number;
  readonly owner: string;
}

/** A message that is kept, because it could not be delivered at once or before it is sent. */
export interface Kept {
  readonly endpointId: string;
  readonly message: WebhookMessage;
  readonly status: 'waiting' | 'expired';
  readonly attempts: number;
  /** s from now. */
  readonly nextInS: number;
  readonly lastStatus: number | undefined;
  readonly lastReason: string | undefined;
  /** Whether the queue is to be told; not for a message that is being sent. */
  readonly wakes: boolean;
  /** Of messages that join pills, or that were never attempted: which pills, by partition. */
  readonly joined: readonly OwnedRange[];
}

/** What becomes of messages in PostgreSQL. */
export type Change =
  | { readonly kind: 'keep'; readonly kept: Kept }
  | { readonly kind: 'delivered'; readonly endpointId: string; readonly messageId: string }
  | ({
      readonly kind: 'failed';
      readonly endpointId: string;
      readonly messageId: string;
      /** s from now, or what it is from now on: it was given up. */
      readonly next: number | 'failed' | 'expired';
    } & Pick<Kept, 'attempts' | 'lastStatus' | 'lastReason'>);

/** An endpoint that was deleted meanwhile gets nothing; a message that is there stays as it is. */
export async function insertDeliveries(
  tx: Transaction<Tables>,
  messages: readonly Kept[],
): Promise<void> {
  const rows = messages.map(({ message, ...kept }) => ({
    endpoint_id: kept.endpointId,
    ...{ message_id: message.id, event_type: message.type, body: message.body },
    ...{ pills: message.pills, occurred_s: message.occurredAt / 1e6 },
    ...{ status: kept.status, attempts: kept.attempts, next_in_s: kept.nextInS },
    ...{ last_status: kept.lastStatus ?? null, last_reason: kept.lastReason ?? null },
  }));
  await sql`
    INSERT INTO webhook_deliveries (endpoint_id, message_id, event_type, body, pills, occurred_at,
      status, attempts, next_at, last_status, last_reason, settled_at)
    SELECT r.endpoint_id, r.message_id, r.event_type, r.body, r.pills, to_timestamp(r.occurred_s),
      r.status, r.attempts, now() + make_interval(secs => r.next_in_s), r.last_status, r.last_reason,
      CASE WHEN r.status <> 'waiting' THEN now() END
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS r(endpoint_id text, message_id text,
      event_type text, body text, pills int, occurred_s double precision, status text,
      attempts int, next_in_s double precision, last_status int, last_reason text)
    -- Locked, so that one that is being deleted is waited for instead of failing the statement.
    JOIN (SELECT id FROM webhook_endpoints
          WHERE id = ANY (${[...new Set(messages.map(({ endpointId }) => endpointId))]}::text[])
          ORDER BY id FOR KEY SHARE) e ON e.id = r.endpoint_id
    ON CONFLICT DO NOTHING`.execute(tx);
}

/** What was delivered is in the log of attempts. */
export async function removeDelivered(
  tx: Transaction<Tables>,
  delivered: readonly { readonly endpointId: string; readonly messageId: string }[],
): Promise<void> {
  if (delivered.length === 0) return;
  await sql`
    DELETE FROM webhook_deliveries d
    USING unnest(${delivered.map(({ endpointId }) => endpointId)}::text[],
      ${delivered.map(({ messageId }) => messageId)}::text[]) AS s(endpoint_id, message_id)
    WHERE d.endpoint_id = s.endpoint_id AND d.message_id = s.message_id`.execute(tx);
}

/** One that was given up is settled; it is kept to be recovered. */
export async function putOff(
  tx: Transaction<Tables>,
  failed: readonly Extract<Change, { kind: 'failed' }>[],
): Promise<void> {
  if (failed.length === 0) return;
  const rows = failed.map((one) => ({
    ...{ endpoint_id: one.endpointId, message_id: one.messageId, attempts: one.attempts },
    ...(typeof one.next === 'number' ? { next_in_s: one.next } : { status: one.next }),
    ...{ last_status: one.lastStatus ?? null, last_reason: one.lastReason ?? null },
  }));
  await sql`
    UPDATE webhook_deliveries d SET attempts = r.attempts, last_status = r.last_status,
      last_reason = r.last_reason,
      next_at = coalesce(now() + make_interval(secs => r.next_in_s), d.next_at),
      status = coalesce(r.status, 'waiting'),
      settled_at = CASE WHEN r.status IS NOT NULL THEN now() END
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS r(endpoint_id text, message_id text,
      attempts int, next_in_s double precision, status text, last_status int, last_reason text)
    WHERE d.endpoint_id = r.endpoint_id AND d.message_id = r.message_id`.execute(tx);
}
