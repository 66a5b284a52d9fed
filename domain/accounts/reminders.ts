import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { PAST_DUE_GRACE_MS } from '../access/account-access.ts';

const DAY_MS = 86_400_000;
/** Days before a key's expiry at which one reminder is raised. */
export const KEY_EXPIRING_DAYS = 7;
/** A key with a shorter life was meant to expire soon, so no reminder is raised. */
const KEY_LIFE_MIN_DAYS = 14;

/**
 * Raises events that depend on time alone: `payment.reminder` on each of the 7 days that a payment is
 * past due (except the first, which has `payment.failed`), `account.suspended` after them, and `key.expiring` 7 days before a key
 * expires, unless a rotation set the expiry. Each occurrence is raised once, whatever the number of
 * processes and runs. @returns how many were raised
 */
export async function raiseReminders(db: Database): Promise<number> {
  return (await remindOfPayments(db)) + (await raiseSuspensions(db)) + (await remindOfKeys(db));
}

/** When the grace ends, and not for those whose grace ended long ago. */
async function raiseSuspensions(db: Database): Promise<number> {
  const graceDays = PAST_DUE_GRACE_MS / DAY_MS;
  const { numAffectedRows } = await sql`
    INSERT INTO account_events (account_id, type, dedupe, data)
    SELECT account_id, 'account.suspended',
      'account.suspended/' || provider_reference || '/' || extract(epoch FROM past_due_since),
      jsonb_build_object('reason', 'payment_due', 'tier', tier, 'past_due_since', past_due_since)
    FROM subscriptions
    WHERE status = 'past_due' AND past_due_since <= now() - make_interval(days => ${graceDays}::int)
      AND past_due_since > now() - make_interval(days => 2 * ${graceDays}::int)
    ON CONFLICT DO NOTHING`.execute(db);
  return Number(numAffectedRows ?? 0);
}

async function remindOfPayments(db: Database): Promise<number> {
  const graceDays = PAST_DUE_GRACE_MS / DAY_MS;
  const { numAffectedRows } = await sql`
    INSERT INTO account_events (account_id, type, dedupe, data)
    SELECT account_id, 'payment.reminder',
      'payment.reminder/' || provider_reference || '/' || extract(epoch FROM past_due_since) || '/' || days,
      jsonb_build_object('tier', tier, 'past_due_since', past_due_since,
        'access_ends_at', past_due_since + make_interval(days => ${graceDays}::int),
        'days_left', ${graceDays}::int - days)
    FROM subscriptions,
      LATERAL (SELECT floor(extract(epoch FROM now() - past_due_since) / 86400)::int AS days) AS past
    WHERE status = 'past_due' AND days BETWEEN 1 AND ${graceDays}::int - 1
    ON CONFLICT DO NOTHING`.execute(db);
  return Number(numAffectedRows ?? 0);
}

async function remindOfKeys(db: Database): Promise<number> {
  const { numAffectedRows } = await sql`
    INSERT INTO account_events (account_id, type, dedupe, data)
    SELECT account_id, 'key.expiring', 'key.expiring/' || id || '/' || extract(epoch FROM expires_at),
      jsonb_build_object('key', id, 'hint', hint, 'name', name, 'expires_at', expires_at)
    FROM api_keys
    WHERE revoked_at IS NULL AND replaced_by IS NULL
      AND expires_at > now() AND expires_at <= now() + make_interval(days => ${KEY_EXPIRING_DAYS})
      AND expires_at - created_at >= make_interval(days => ${KEY_LIFE_MIN_DAYS})
    ON CONFLICT DO NOTHING`.execute(db);
  return Number(numAffectedRows ?? 0);
}
