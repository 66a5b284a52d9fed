import { setTimeout as sleep } from 'node:timers/promises';
import { type Selectable, sql } from 'kysely';
import pLimit from 'p-limit';
import { wakeEndpoints } from '../../../domain/webhooks/deliveries/drain-jobs.ts';
import {
  ATTEMPTS_MAX,
  retryWaitS,
  testWaitS,
} from '../../../domain/webhooks/deliveries/retry-schedule.ts';
import type { MessageType } from '../../../domain/webhooks/events/event-catalogue.ts';
import type { WebhookMessage } from '../../../domain/webhooks/events/webhook-message.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';
import { takeToken, waitForTokenMs } from '../../../lib/rate/token-bucket.ts';
import { type Attempter, isTest } from '../attempt.ts';
import type { DeliveryWriter } from '../delivery-writer.ts';
import type { EndpointRegistry } from '../endpoints/endpoint-registry.ts';
import { type RegisteredEndpoint, rateLimitOf } from '../endpoints/registered-endpoint.ts';
import { LIMITS } from '../limits.ts';

/** Messages that wait for a change of their endpoint or its plan are checked again after this long. */
const POSTPONED_S = 300;

interface DueRow
  extends Pick<
    Selectable<Tables['webhook_deliveries']>,
    'message_id' | 'body' | 'pills' | 'attempts'
  > {
  readonly event_type: MessageType;
  readonly occurred_us: string;
}

interface DrainDeps {
  readonly db: Database;
  readonly endpoints: EndpointRegistry;
  readonly attempter: Attempter;
  readonly writer: DeliveryWriter;
  readonly signal: AbortSignal;
  /**
   * Share of the log that this dispatcher reads: it may use the same share of an endpoint's rate.
   */
  share(): number;
}

/**
 * Attempts the due messages of one endpoint, oldest first, until none is due or its time slice is
 * over; then the endpoint is woken again. While the endpoint fails, one message at a time is tried:
 * its answer decides about the others.
 */
export async function drainEndpoint(endpointId: string, deps: DrainDeps): Promise<void> {
  const { db, endpoints, signal } = deps;
  const endpoint = await endpoints.findOrLoad(endpointId);
  if (endpoint === undefined) return;
  const endsAtMs = performance.now() + LIMITS.drainSliceMs;
  const limit = pLimit(LIMITS.drainConcurrency);
  for (let count = 0; count < LIMITS.drainMessagesMax && performance.now() < endsAtMs; ) {
    if (signal.aborted) return;
    // The owner may have enabled it a moment ago: the notification may still be in flight.
    if (!isActive(endpoint)) await endpoints.load(endpoint.settings.accountId);
    if (!isActive(endpoint)) {
      await postponeAll(db, endpoint);
      return;
    }
    if (await isResting(db, endpoint)) break;
    const isProbe = endpoint.failingSinceMs !== undefined;
    const due = await claim(db, endpointId, {
      rows: isProbe ? 1 : LIMITS.drainConcurrency,
      testsOnly: endpoint.state(Date.now()) === 'pending',
    });
    if (due.length === 0) break;
    count += due.length;
    const attempts = due.map((row) => limit(() => attemptDue(endpoint, row, deps)));
    const settled = await Promise.all(attempts);
    if (isProbe && !settled[0]) break;
  }
  // A rest of this process's breaker may not be written yet.
  const restMs = endpoint.breaker.restingUntilMs() - performance.now();
  await wakeEndpoints(db, [endpointId], { notBeforeS: Math.max(0, restMs / 1_000) });
}

/** Checks the breaker of this process, and the rests that other processes have written. */
async function isResting(db: Database, { id, breaker }: RegisteredEndpoint): Promise<boolean> {
  if (breaker.restingUntilMs() > performance.now()) return true;
  const row = await db
    .selectFrom('webhook_endpoints')
    .select(sql<boolean>`coalesce(resting_until > now(), false)`.as('rests'))
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.rests ?? true;
}

/** Leases due messages: no other worker tries them until the lease ends, nor after a crash. */
async function claim(
  db: Database,
  endpointId: string,
  { rows, testsOnly }: { readonly rows: number; readonly testsOnly: boolean },
): Promise<readonly DueRow[]> {
  const claimed = await sql<DueRow & { readonly id: string }>`
    UPDATE webhook_deliveries SET next_at = now() + make_interval(secs => ${LIMITS.leaseS})
    WHERE id IN (
      SELECT id FROM webhook_deliveries
      WHERE endpoint_id = ${endpointId} AND status = 'waiting' AND next_at <= now()
        AND (event_type = 'endpoint.test' OR NOT ${testsOnly})
      ORDER BY id LIMIT ${rows} FOR UPDATE SKIP LOCKED)
    RETURNING id, message_id, event_type, body, pills, attempts,
      (extract(epoch FROM occurred_at) * 1000000)::bigint AS occurred_us`.execute(db);
  return [...claimed.rows].sort((a, b) => Number(a.id) - Number(b.id));
}

/** @returns whether the message was delivered, or needs no attempt */
async function attemptDue(endpoint: RegisteredEndpoint, row: DueRow, deps: DrainDeps) {
  const { attempter, writer } = deps;
  const message: WebhookMessage = {
    id: row.message_id,
    type: row.event_type,
    body: row.body,
    pills: row.pills,
    occurredAt: Number(row.occurred_us),
  };
  const ids = { endpointId: endpoint.id, messageId: message.id };
  const ageS = Date.now() / 1_000 - message.occurredAt / 1e6;
  if (message.pills > 0 && ageS > endpoint.settings.maxAgeS) {
    const last = { attempts: row.attempts, lastStatus: undefined, lastReason: 'too_old' };
    await writer.apply({ kind: 'failed', ...ids, next: 'expired', ...last });
    attempter.expired(endpoint, message, row.attempts);
    return true;
  }
  if (!(await takeTurn(endpoint, deps))) return false;
  const attempts = row.attempts + 1;
  const result = await attempter.attempt(endpoint, message, attempts, attempts >= ATTEMPTS_MAX);
  if (result.kind === 'stopped' || result.kind === 'unwanted') return false;
  if (result.kind === 'delivered') {
    await writer.apply({ kind: 'delivered', ...ids });
    return true;
  }
  const last = { attempts, lastStatus: result.status, lastReason: result.reason };
  const wait = isTest(message) ? testWaitS : retryWaitS;
  const next = wait(attempts, result.retryAfterS) ?? 'failed';
  await writer.apply({ kind: 'failed', ...ids, next, ...last });
  return false;
}

/**
 * Waits for the endpoint's rate. @returns false when no attempt may be made: the process is
 * stopping, or a message claimed with this one has failed meanwhile; the message is tried after its
 * lease
 */
async function takeTurn(endpoint: RegisteredEndpoint, { signal, share }: DrainDeps) {
  const { breaker, bucket } = endpoint;
  const rate = rateLimitOf(endpoint, share());
  for (;;) {
    if (breaker.restingUntilMs() > performance.now()) return false;
    const waitMs = waitForTokenMs(bucket, rate, performance.now());
    if (waitMs === 0) break;
    await sleep(Math.ceil(waitMs), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return false;
  }
  takeToken(bucket, rate, performance.now());
  return true;
}

function isActive(endpoint: RegisteredEndpoint): boolean {
  const state = endpoint.state(Date.now());
  return state === 'enabled' || state === 'pending';
}

/** A disabled endpoint, or one beyond its plan, keeps its waiting messages until they are too old. */
async function postponeAll(db: Database, { id, settings }: RegisteredEndpoint): Promise<void> {
  const isTooOld = sql`pills > 0
    AND occurred_at < now() - make_interval(secs => ${settings.maxAgeS})`;
  await sql`UPDATE webhook_deliveries SET next_at = now() + make_interval(secs => ${POSTPONED_S}),
      status = CASE WHEN ${isTooOld} THEN 'expired' ELSE status END,
      last_reason = CASE WHEN ${isTooOld} THEN 'too_old' ELSE last_reason END,
      settled_at = CASE WHEN ${isTooOld} THEN now() END
    WHERE endpoint_id = ${id} AND status = 'waiting' AND next_at <= now()`.execute(db);
}
