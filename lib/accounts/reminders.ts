import { sql } from 'kysely';
import { PAST_DUE_GRACE_MS } from '../access/access.ts';
import type { Database } from '../postgres/database.ts';

const DAY_MS = 86_400_000;
/** A key's end is told so many days before, once. */
export const KEY_EXPIRING_DAYS = 7;
/** A key that lives so short was made to end soon: nobody wants a mail about it. */
const KEY_LIFE_MIN_DAYS = 14;

/**
 * Raises what an account is to be warned of because time went by: `payment.reminder` on each day of
 * the 7 that a payment is past due (the day of the failure has its `payment.failed`), and
 * `key.expiring` 7 days before a key's end, unless a rotation set that end. Each occurrence is raised
 * once, by any number of processes and runs. @returns how many were raised
 */
export async function raiseReminders(db: Database): Promise<number> {
  return (await remindOfPayments(db)) + (await remindOfKeys(db));
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
