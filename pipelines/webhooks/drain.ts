import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import pLimit from 'p-limit';
import type { Database } from '../../lib/postgres/database.ts';
import type { MessageType } from '../../lib/webhooks/event-types.ts';
import type { WebhookMessage } from '../../lib/webhooks/message.ts';
import { wakeEndpoints } from '../../lib/webhooks/queue.ts';
import { ATTEMPTS_MAX, retryWaitS, testWaitS } from '../../lib/webhooks/schedule.ts';
import { type Attempter, isTest } from './attempt.ts';
import type { Audience, Listener } from './audience.ts';
import type { Keeper } from './keeper.ts';
import { LIMITS } from './limits.ts';

/** What cannot be delivered now for a reason that is not its own is looked at again then. */
const PUT_OFF_S = 300;

interface DueRow {
  readonly message_id: string;
  readonly event_type: MessageType;
  readonly body: string;
  readonly pills: number;
  readonly occurred_us: string;
  readonly attempts: number;
}

export interface DrainParts {
  readonly db: Database;
  readonly audience: Audience;
  readonly attempter: Attempter;
  readonly keeper: Keeper;
  readonly signal: AbortSignal;
  /** Share of the log that this dispatcher reads: of an endpoint's rate it may use as much. */
  share(): number;
}

/**
 * Attempts what is due for one endpoint, oldest first, until nothing is due or its slice is over;
 * then it is woken again for the next. While the endpoint fails one message at a time is tried: the
 * others wait for what it answers.
 */
export async function drain(endpointId: string, parts: DrainParts): Promise<void> {
  const { db, audience, signal } = parts;
  const listener = await audience.find(endpointId);
  if (listener === undefined) return;
  const endsAtMs = performance.now() + LIMITS.drainSliceMs;
  const limit = pLimit(LIMITS.drainConcurrency);
  for (let count = 0; count < LIMITS.drainMessagesMax && performance.now() < endsAtMs; ) {
    if (signal.aborted) return;
    // Its owner may have enabled it a moment ago: the change that tells so may still be on its way.
    if (!isActive(listener)) await audience.load(listener.endpoint.accountId);
    const standing = listener.standing(Date.now());
    if (standing !== 'enabled' && standing !== 'pending') {
      await putOffAll(db, listener);
      return;
    }
    if (await isResting(db, listener)) break;
    const isProbe = listener.failingSinceMs !== undefined;
    const due = await claim(db, endpointId, {
      rows: isProbe ? 1 : LIMITS.drainConcurrency,
      testsOnly: standing === 'pending',
    });
    if (due.length === 0) break;
    count += due.length;
    const attempts = due.map((row) => limit(() => attemptOne(listener, row, parts)));
    const went = await Promise.all(attempts);
    if (isProbe && !went[0]) break;
  }
  // What rests by this process's breaker need not be written yet.
  const restMs = listener.breaker.restingUntilMs() - performance.now();
  await wakeEndpoints(db, [endpointId], { notBeforeS: Math.max(0, restMs / 1_000) });
}

/** The breaker of this process, and what others have written. */
async function isResting(db: Database, listener: Listener): Promise<boolean> {
  if (listener.breaker.restingUntilMs() > performance.now()) return true;
  const row = await db
    .selectFrom('webhook_endpoints')
    .select(sql<boolean>`coalesce(resting_until > now(), false)`.as('rests'))
    .where('id', '=', listener.id)
    .executeTakeFirst();
  return row?.rests ?? true;
}

/** Leases what is due: nobody else tries it until then, and a crash costs that time. */
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

/** @returns whether it was delivered, or needs no attempt */
async function attemptOne(
  listener: Listener,
  row: DueRow,
  { attempter, keeper, signal, share }: DrainParts,
): Promise<boolean> {
  const endpointId = listener.id;
  const message: WebhookMessage = {
    ...{ id: row.message_id, type: row.event_type, body: row.body, pills: row.pills },
    occurredAt: Number(row.occurred_us),
  };
  const ageS = Date.now() / 1_000 - message.occurredAt / 1e6;
  if (message.pills > 0 && ageS > listener.endpoint.maxAgeS) {
    const last = { attempts: row.attempts, lastStatus: undefined, lastReason: 'too_old' };
    const change = { endpointId, messageId: message.id, next: 'expired', ...last } as const;
    await keeper.apply({ kind: 'failed', ...change });
    attempter.expired(listener, message, row.attempts);
    return true;
  }
  const { endpoint, tokens } = listener;
  const perS = endpoint.ratePerS * share();
  for (;;) {
    // Those that were claimed with it may have failed meanwhile: its lease ends, then it is tried.
    if (listener.breaker.restingUntilMs() > performance.now()) return false;
    const waitMs = tokens.waitMs(perS, performance.now());
    if (waitMs === 0) break;
    await sleep(Math.ceil(waitMs), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return false;
  }
  tokens.take(perS, performance.now());
  const attempts = row.attempts + 1;
  const verdict = await attempter.attempt(listener, message, attempts, attempts >= ATTEMPTS_MAX);
  if (verdict.kind === 'stopped' || verdict.kind === 'unwanted') return false;
  if (verdict.kind === 'delivered') {
    await keeper.apply({ kind: 'delivered', endpointId, messageId: message.id });
    return true;
  }
  const last = { attempts, lastStatus: verdict.status, lastReason: verdict.reason };
  const wait = isTest(message) ? testWaitS : retryWaitS;
  const next = wait(attempts, verdict.retryAfterS) ?? 'failed';
  await keeper.apply({ kind: 'failed', endpointId, messageId: message.id, next, ...last });
  return false;
}

function isActive(listener: Listener): boolean {
  const standing = listener.standing(Date.now());
  return standing === 'enabled' || standing === 'pending';
}

/** A disabled endpoint, or one that its plan has no place for, keeps what waits and is not too old. */
async function putOffAll(db: Database, { id, endpoint }: Listener): Promise<void> {
  await sql`UPDATE webhook_deliveries SET next_at = now() + make_interval(secs => ${PUT_OFF_S}),
      status = CASE WHEN pills > 0 AND occurred_at < now() - make_interval(secs => ${endpoint.maxAgeS})
        THEN 'expired' ELSE status END,
      last_reason = CASE WHEN pills > 0 AND occurred_at < now() - make_interval(secs => ${endpoint.maxAgeS})
        THEN 'too_old' ELSE last_reason END,
      settled_at = CASE WHEN pills > 0 AND occurred_at < now() - make_interval(secs => ${endpoint.maxAgeS})
        THEN now() END
    WHERE endpoint_id = ${id} AND status = 'waiting' AND next_at <= now()`.execute(db);
}
