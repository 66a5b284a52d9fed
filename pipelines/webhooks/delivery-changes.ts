import { sql, type Transaction } from 'kysely';
import { wakeEndpoints } from '../../domain/webhooks/deliveries/drain-jobs.ts';
import type { WebhookMessage } from '../../domain/webhooks/events/webhook-message.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { fence, type OwnedRange } from './fencing.ts';

/** A message to be stored: it could not be delivered at once, or must be stored before it is sent. */
export interface NewDelivery {
  readonly endpointId: string;
  readonly message: WebhookMessage;
  readonly status: 'waiting' | 'expired';
  readonly attempts: number;
  /** Seconds from now. */
  readonly nextInS: number;
  readonly lastStatus: number | undefined;
  readonly lastReason: string | undefined;
  /** Whether a drain is scheduled; not for a message that is being sent. */
  readonly wakes: boolean;
  /** The pills, by partition, of a message that joins pills or was never attempted. */
  readonly joined: readonly OwnedRange[];
}

/** A change to `webhook_deliveries`. */
export type DeliveryChange =
  | { readonly kind: 'store'; readonly delivery: NewDelivery }
  | { readonly kind: 'delivered'; readonly endpointId: string; readonly messageId: string }
  | ({
      readonly kind: 'failed';
      readonly endpointId: string;
      readonly messageId: string;
      /** Seconds until the next attempt, or the final status of a message that is given up. */
      readonly next: number | 'failed' | 'expired';
    } & Pick<NewDelivery, 'attempts' | 'lastStatus' | 'lastReason'>);

/** Makes all changes in one transaction. @throws FencedError: then no change was made */
export async function applyChanges(
  db: Database,
  epoch: string,
  changes: readonly DeliveryChange[],
): Promise<void> {
  const deliveries = changes.flatMap((one) => (one.kind === 'store' ? [one.delivery] : []));
  const delivered = changes.flatMap((one) => (one.kind === 'delivered' ? [one] : []));
  const failed = changes.flatMap((one) => (one.kind === 'failed' ? [one] : []));
  const joined = deliveries.flatMap(({ endpointId, joined: ranges }) =>
    ranges.map((range) => ({ endpointId, ...range })),
  );
  await db.transaction().execute(async (tx) => {
    await fence(tx, epoch, joined);
    if (deliveries.length > 0) await insertDeliveries(tx, deliveries);
    if (joined.length > 0) await insertJoined(tx, epoch, joined);
    if (delivered.length > 0) await removeDelivered(tx, delivered);
    if (failed.length > 0) await updateFailed(tx, failed);
    const woken = [...deliveries.filter(({ wakes }) => wakes), ...failed];
    await wakeEndpoints(tx, [...new Set(woken.map(({ endpointId }) => endpointId))]);
  });
}

/** A message to an endpoint deleted meanwhile is dropped; one that is stored already stays as is. */
async function insertDeliveries(
  tx: Transaction<Tables>,
  deliveries: readonly NewDelivery[],
): Promise<void> {
  const rows = deliveries.map(({ message, ...delivery }) => ({
    endpoint_id: delivery.endpointId,
    message_id: message.id,
    event_type: message.type,
    body: message.body,
    pills: message.pills,
    occurred_s: message.occurredAt / 1e6,
    status: delivery.status,
    attempts: delivery.attempts,
    next_in_s: delivery.nextInS,
    last_status: delivery.lastStatus ?? null,
    last_reason: delivery.lastReason ?? null,
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
    -- Locked, so that the statement waits for an endpoint that is being deleted instead of failing.
    JOIN (SELECT id FROM webhook_endpoints
          WHERE id = ANY (${[...new Set(deliveries.map(({ endpointId }) => endpointId))]}::text[])
          ORDER BY id FOR KEY SHARE) e ON e.id = r.endpoint_id
    ON CONFLICT DO NOTHING`.execute(tx);
}

/** Records which pills the stored messages hold, so that a later owner leaves them out. */
async function insertJoined(
  tx: Transaction<Tables>,
  epoch: string,
  joined: readonly (OwnedRange & { readonly endpointId: string })[],
): Promise<void> {
  await sql`
    INSERT INTO webhook_joined (epoch, partition, endpoint_id, first_offset, last_offset)
    SELECT ${epoch}, j.partition, j.endpoint_id, j.first_offset, j.last_offset
    FROM unnest(${joined.map(({ partition }) => partition)}::int[],
      ${joined.map(({ endpointId }) => endpointId)}::text[],
      ${joined.map(({ first }) => first)}::bigint[], ${joined.map(({ last }) => last)}::bigint[])
      AS j(partition, endpoint_id, first_offset, last_offset)
    JOIN webhook_endpoints e ON e.id = j.endpoint_id
    ON CONFLICT DO NOTHING`.execute(tx);
}

/** The log of attempts keeps delivered messages, so the row is no longer needed. */
async function removeDelivered(
  tx: Transaction<Tables>,
  delivered: readonly { readonly endpointId: string; readonly messageId: string }[],
): Promise<void> {
  await sql`
    DELETE FROM webhook_deliveries d
    USING unnest(${delivered.map(({ endpointId }) => endpointId)}::text[],
      ${delivered.map(({ messageId }) => messageId)}::text[]) AS s(endpoint_id, message_id)
    WHERE d.endpoint_id = s.endpoint_id AND d.message_id = s.message_id`.execute(tx);
}

/** A message that is given up is settled, and stays to be recovered. */
async function updateFailed(
  tx: Transaction<Tables>,
  failed: readonly Extract<DeliveryChange, { kind: 'failed' }>[],
): Promise<void> {
  const rows = failed.map((one) => ({
    endpoint_id: one.endpointId,
    message_id: one.messageId,
    attempts: one.attempts,
    ...(typeof one.next === 'number' ? { next_in_s: one.next } : { status: one.next }),
    last_status: one.lastStatus ?? null,
    last_reason: one.lastReason ?? null,
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
