import { type Selectable, sql, type Transaction } from 'kysely';
import type { Database } from '../../../lib/postgres/database.ts';
import { inTurn } from '../../../lib/postgres/in-turn.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { newId } from '../../access/id.ts';
import { eventMessage, type WebhookMessage } from '../events/webhook-message.ts';
import { wakeEndpoints } from './drain-jobs.ts';

export const DELIVERY_LIMITS = {
  pageMax: 200,
  pageDefault: 50,
  /** Messages that one call of recover posts again. */
  recoveredMax: 10_000,
  /** Messages that may wait for one endpoint. */
  waitingMax: 10_000,
  /** Given-up messages can be recovered for this long. */
  keptDays: 30,
} as const;

/** Rows that one statement changes: the statement must end well within its time-out. */
const CHUNK = 2_000;
/** Messages that one statement writes, each of up to 20 kB. */
const INSERT_CHUNK = 50;

export const DELIVERY_STATUSES = ['waiting', 'failed', 'expired'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A message that waits or was given up, without its body. */
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

/** Messages of an endpoint that wait or were given up, newest first. */
export function listDeliveries(
  db: Database,
  endpointId: string,
  of: {
    readonly status?: DeliveryStatus | undefined;
    readonly limit: number;
    /** `id` of the last delivery of the previous page. */
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
 * Stores messages to be posted at once, as if they had occurred now: a request for old messages
 * overrides `max_age_s`. Messages that are stored already stay as they are. The caller wakes the
 * endpoint. @returns how many are new
 */
export async function storeMessages(
  tx: Transaction<Tables>,
  endpointId: string,
  messages: readonly WebhookMessage[],
): Promise<number> {
  let stored = 0n;
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
    stored += result.numInsertedOrUpdatedRows ?? 0n;
  }
  return Number(stored);
}

/**
 * Stores an `endpoint.test`. Earlier tests that still wait are deleted: one is enough, and after a
 * change of the URL they hold another challenge. @returns the message id
 */
export async function storeTestMessage(
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
  await storeMessages(tx, id, [message]);
  await wakeEndpoints(tx, [id]);
  return message.id;
}

/** Discarded pills are being replayed: from now on, new discards are reported again. */
export async function clearBacklogFull(tx: Transaction<Tables>, endpointId: string): Promise<void> {
  await tx
    .updateTable('webhook_endpoints')
    .set({ backlog_full_since: null })
    .where('id', '=', endpointId)
    .where('backlog_full_since', 'is not', null)
    .execute();
}

/** Names the turn of changes of an account's messages: they may be long, and lock no account. */
export function messageTurn(accountId: string): string {
  return `${accountId}/messages`;
}

/** A message that is sent again gets all attempts, and its full time to live from now on. */
const RESENT = {
  status: 'waiting',
  attempts: 0,
  occurred_at: sql<Date>`now()`,
  next_at: sql<Date>`now()`,
  settled_at: null,
} as const;

/** Sends a stored message again, under its id. @returns whether it is stored */
export function resendStored(
  db: Database,
  accountId: string,
  endpointId: string,
  messageId: string,
): Promise<boolean> {
  return inTurn(db, messageTurn(accountId), async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('webhook_deliveries')
      .set(RESENT)
      .where('endpoint_id', '=', endpointId)
      .where('message_id', '=', messageId)
      .where(isRecent())
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
    await wakeEndpoints(tx, [endpointId]);
    return true;
  });
}

/** Sends a delivered message again, which is no longer stored, under its id. */
export function resendPosted(
  db: Database,
  accountId: string,
  endpointId: string,
  { id, type, body, pills }: PostedMessage,
): Promise<void> {
  return inTurn(db, messageTurn(accountId), async (tx) => {
    await tx
      .insertInto('webhook_deliveries')
      .values({
        ...{ endpoint_id: endpointId, message_id: id, event_type: type, body, pills },
        ...RESENT,
      })
      .onConflict((conflict) => conflict.columns(['endpoint_id', 'message_id']).doUpdateSet(RESENT))
      .execute();
    await wakeEndpoints(tx, [endpointId]);
  });
}

/**
 * Posts again all messages that were given up at or after a time, oldest first.
 * @returns `more`: there are more than one call takes
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
      .set(RESENT)
      .where('id', 'in', due(limit).forUpdate())
      .executeTakeFirst();
    recovered += Number(numUpdatedRows);
    if (numUpdatedRows < limit) break;
  }
  if (recovered > 0) await wakeEndpoints(tx, [endpointId]);
  const left = await due(1).executeTakeFirst();
  return { recovered, more: left !== undefined };
}

/** Counts the waiting messages of an endpoint, up to `max`. */
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

/** Deletes the stored messages of an endpoint in chunks, each in a transaction of its own. */
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
