import { type Selectable, sql, type Transaction } from 'kysely';
import { newId } from '../access/id.ts';
import { nowMicros } from '../clock.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { eventMessage, type WebhookMessage } from './message.ts';
import { wakeEndpoints } from './queue.ts';

export const DELIVERY_LIMITS = {
  pageMax: 200,
  pageDefault: 50,
  /** One call of recover. */
  recoveredMax: 10_000,
  /** Messages that may wait for one endpoint. */
  waitingMax: 10_000,
  /** What was given up can be had again for so long. */
  keptDays: 30,
} as const;

/** Rows that one statement changes: it must be done well within its time-out. */
const CHUNK = 2_000;
/** Messages that one statement writes, each of up to 20 kB. */
const INSERT_CHUNK = 50;

export const DELIVERY_STATUSES = ['waiting', 'failed', 'expired'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A message that waits, or was given up. Its body is left out. */
export type Delivery = Omit<
  Selectable<Tables['webhook_deliveries']>,
  'body' | 'bytes' | 'endpoint_id'
>;

/** A message as it was posted before. */
export interface PostedMessage {
  readonly id: string;
  readonly type: string;
  readonly body: string;
  readonly pills: number;
}

/** What waits for an endpoint, or was given up, newest first. */
export function listDeliveries(
  db: Database,
  endpointId: string,
  of: {
    readonly status?: DeliveryStatus | undefined;
    readonly limit: number;
    /** `id` of the last one of the page before. */
    readonly before?: string | undefined;
  },
): Promise<readonly Delivery[]> {
  let query = db
    .selectFrom('webhook_deliveries')
    .select(['id', 'message_id', 'event_type', 'pills', 'occurred_at', 'status', 'attempts'])
    .select(['next_at', 'last_status', 'last_reason', 'created_at', 'settled_at'])
    .where('endpoint_id', '=', endpointId)
    .orderBy('id', 'desc')
    .limit(Math.max(1, Math.min(of.limit, DELIVERY_LIMITS.pageMax)));
  if (of.status !== undefined) query = query.where('status', '=', of.status);
  if (of.before !== undefined) query = query.where('id', '<', of.before);
  return query.execute();
}

/**
 * Keeps messages to be posted at once, as if they had occurred now: whoever asks for old ones wants
 * them, whatever `max_age_s` is. Those that are kept already are left as they are. The caller wakes
 * the endpoint. @returns how many are new
 */
export async function keepMessages(
  tx: Transaction<Tables>,
  endpointId: string,
  messages: readonly WebhookMessage[],
): Promise<number> {
  let kept = 0n;
  for (let at = 0; at < messages.length; at += INSERT_CHUNK) {
    const now = sql<Date>`now()`;
    const rows = messages.slice(at, at + INSERT_CHUNK).map(({ id, type, body, pills }) => ({
      ...{ endpoint_id: endpointId, message_id: id, event_type: type, body, pills },
      ...{ occurred_at: now, next_at: now },
    }));
    const result = await tx
      .insertInto('webhook_deliveries')
      .values(rows)
      .onConflict((conflict) => conflict.columns(['endpoint_id', 'message_id']).doNothing())
      .executeTakeFirst();
    kept += result.numInsertedOrUpdatedRows ?? 0n;
  }
  return Number(kept);
}

/**
 * Posts an `endpoint.test`; those that still wait are dropped: one is enough, and after a change of
 * the URL they hold another challenge. @returns its message id
 */
export async function keepTest(
  tx: Transaction<Tables>,
  { id, challenge }: { readonly id: string; readonly challenge: string },
): Promise<string> {
  await tx
    .deleteFrom('webhook_deliveries')
    .where('endpoint_id', '=', id)
    .where('event_type', '=', 'endpoint.test')
    .execute();
  const data = { endpoint: id, challenge };
  const message = eventMessage(newId('msg'), 'endpoint.test', data, nowMicros());
  await keepMessages(tx, id, [message]);
  await wakeEndpoints(tx, [id]);
  return message.id;
}

/** Pills that were not kept are replayed: from now on it is told anew. */
export async function acknowledgeBacklog(
  tx: Transaction<Tables>,
  endpointId: string,
): Promise<void> {
  await tx
    .updateTable('webhook_endpoints')
    .set({ backlog_full_since: null })
    .where('id', '=', endpointId)
    .where('backlog_full_since', 'is not', null)
    .execute();
}

/** What a message gets that is sent again: all attempts, and its full time to live from now on. */
const ANEW = {
  status: 'waiting',
  attempts: 0,
  occurred_at: sql<Date>`now()`,
  next_at: sql<Date>`now()`,
  settled_at: null,
} as const;

/** Sends a kept message again, under its id. @returns whether it is kept */
export function resendKept(db: Database, endpointId: string, messageId: string): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('webhook_deliveries')
      .set(ANEW)
      .where('endpoint_id', '=', endpointId)
      .where('message_id', '=', messageId)
      .where(isRecent())
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
    await wakeEndpoints(tx, [endpointId]);
    return true;
  });
}

/** Sends a message again that was delivered, so that it is not kept any more, under its id. */
export function resendPosted(
  db: Database,
  endpointId: string,
  { id, type, body, pills }: PostedMessage,
): Promise<void> {
  return db.transaction().execute(async (tx) => {
    await tx
      .insertInto('webhook_deliveries')
      .values({
        ...{ endpoint_id: endpointId, message_id: id, event_type: type, body, pills },
        ...ANEW,
      })
      .onConflict((conflict) => conflict.columns(['endpoint_id', 'message_id']).doUpdateSet(ANEW))
      .execute();
    await wakeEndpoints(tx, [endpointId]);
  });
}

/**
 * Has everything posted again that was given up at or after a time, oldest first; what was given up
 * before stays. @returns `more`: there is more of it than one call takes
 */
export async function recoverDeliveries(
  tx: Transaction<Tables>,
  endpointId: string,
  since: Date,
  max: number = DELIVERY_LIMITS.recoveredMax,
): Promise<{ readonly recovered: number; readonly more: boolean }> {
  const due = (limit: number) =>
    tx
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('endpoint_id', '=', endpointId)
      .where('status', '<>', 'waiting')
      .where('settled_at', '>=', since)
      .where(isRecent())
      .orderBy('settled_at')
      .orderBy('id')
      .limit(limit);
  let recovered = 0;
  while (recovered < max) {
    const limit = Math.min(CHUNK, max - recovered);
    const { numUpdatedRows } = await tx
      .updateTable('webhook_deliveries')
      .set(ANEW)
      .where('id', 'in', due(limit).forUpdate())
      .executeTakeFirst();
    recovered += Number(numUpdatedRows);
    if (numUpdatedRows < limit) break;
  }
  if (recovered > 0) await wakeEndpoints(tx, [endpointId]);
  const left = await due(1).executeTakeFirst();
  return { recovered, more: left !== undefined };
}

/** How many messages of an endpoint wait; counted up to `max`. */
export async function countWaiting(db: Database, endpointId: string, max: number): Promise<number> {
  const { count } = await db
    .selectFrom((eb) =>
      eb
        .selectFrom('webhook_deliveries')
        .select('id')
        .where('endpoint_id', '=', endpointId)
        .where('status', '=', 'waiting')
        .limit(max)
        .as('waiting'),
    )
    .select(sql<string>`count(*)`.as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Deletes what is kept for an endpoint, some at a time, each in a transaction of its own. */
export async function dropDeliveries(db: Database, endpointId: string): Promise<void> {
  for (;;) {
    const some = db
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('endpoint_id', '=', endpointId)
      .limit(CHUNK);
    const { numDeletedRows } = await db
      .deleteFrom('webhook_deliveries')
      .where('id', 'in', some)
      .executeTakeFirst();
    if (numDeletedRows < CHUNK) return;
  }
}

function isRecent() {
  return sql<boolean>`coalesce(settled_at, now()) > now() - make_interval(days => ${DELIVERY_LIMITS.keptDays})`;
}
