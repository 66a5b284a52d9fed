import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { tierOf } from '../access/entitlement.ts';
import { TIERS } from '../access/tiers.ts';
import { readAccountAccess } from './account-row.ts';

export const USAGE_LIMITS = {
  daysMax: 400,
  keysMax: 200,
  endpointsMax: 100,
  keyDays: 14,
  hours: 48,
} as const;

/** Earlier in the day, a few calls would be projected to many. */
const PROJECTION_SHARE_MIN = 0.05;

export type Usage = NonNullable<Awaited<ReturnType<typeof readUsage>>>;

/**
 * Reads the usage of an account; days are UTC, `YYYY-MM-DD`, by PostgreSQL's clock. Counts by key and endpoint lag the daily count by about a second and
 * include calls that were given back.
 * @param days 1 to 400, including today
 * @returns undefined if the account does not exist
 */
export async function readUsage(
  db: Database,
  accountId: string,
  { days }: { readonly days: number },
) {
  const span = Math.max(1, Math.min(Math.trunc(days), USAGE_LIMITS.daysMax));
  // One snapshot, so that today's count and the list of days agree.
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
  return reading.execute(async (tx) => {
    const account = await readAccountAccess(tx, accountId);
    if (account === undefined) return undefined;
    const { rows } = await sql<{ day: string; calls: string; moment: Date }>`
      SELECT to_char(d.day, 'YYYY-MM-DD') AS day, coalesce(u.used, 0) AS calls, n.moment
      FROM (SELECT quota_now() AS moment) n
      CROSS JOIN LATERAL (
        SELECT (n.moment AT TIME ZONE 'UTC')::date - i AS day FROM generate_series(0, ${span - 1}) i
      ) d
      LEFT JOIN usage_days u ON u.account_id = ${accountId} AND u.day = d.day
      ORDER BY d.day`.execute(tx);
    const last = rows.at(-1)!;
    const calls = tx
      .selectFrom('usage_calls as c')
      .where('c.account_id', '=', accountId)
      .where('c.day', '>=', sql<Date>`${rows[0]!.day}::date`)
      .where('c.day', '<=', sql<Date>`${last.day}::date`)
      .select(sql<string>`sum(c.calls)`.as('calls'))
      .orderBy('calls', 'desc');
    const keys = await calls
      .leftJoin('api_keys as k', (on) =>
        on.onRef('k.id', '=', 'c.key_id').onRef('k.account_id', '=', 'c.account_id'),
      )
      .select(['c.key_id as keyId', 'k.name', 'k.hint'])
      .groupBy(['c.key_id', 'k.name', 'k.hint'])
      .orderBy('keyId')
      .limit(USAGE_LIMITS.keysMax)
      .execute();
    const daysOf = await readRecentDays(
      tx,
      accountId,
      last.day,
      keys.map(({ keyId }) => keyId),
    );
    const endpoints = await calls
      .select('c.endpoint')
      .groupBy('c.endpoint')
      .orderBy('c.endpoint')
      .limit(USAGE_LIMITS.endpointsMax)
      .execute();
    const tier = tierOf(account, Date.now());
    const limit = tier === undefined ? 0 : (account.callsPerDay ?? TIERS[tier].callsPerDay);
    return {
      today: todayOf(last.day, Number(last.calls), limit, last.moment),
      /** From the first requested day to today; days without calls have 0. */
      days: rows.map((row) => ({ day: row.day, calls: Number(row.calls) })),
      /** Most calls first, at most 200; a deleted key has neither name nor hint. */
      keys: keys.map((row) => ({
        ...row,
        calls: Number(row.calls),
        /** The last 14 days, oldest first, whatever days were requested. */
        recentDays: daysOf.get(row.keyId) ?? [],
      })),
      /** Most calls first, at most 100. */
      endpoints: endpoints.map((row) => ({ ...row, calls: Number(row.calls) })),
      /** The last 48 hours, oldest first; the present one is the last. */
      hours: await readHours(tx, accountId),
    };
  });
}

/** The calls of each key by day: the last 14 days until `day`, oldest first. */
async function readRecentDays(
  db: Database,
  accountId: string,
  day: string,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, readonly number[]>> {
  const { rows } = await sql<{ key_id: string; days: string[] }>`
    SELECT k.key_id, array_agg(coalesce(c.calls, 0) ORDER BY d.day) AS days
    FROM unnest(${keyIds}::text[]) AS k(key_id)
    CROSS JOIN LATERAL (
      SELECT ${day}::date - i AS day FROM generate_series(0, ${USAGE_LIMITS.keyDays - 1}::int) i
    ) d
    LEFT JOIN LATERAL (
      SELECT sum(calls) AS calls FROM usage_calls u
      WHERE u.account_id = ${accountId} AND u.day = d.day AND u.key_id = k.key_id
    ) c ON true
    GROUP BY k.key_id`.execute(db);
  return new Map(rows.map(({ key_id: id, days }) => [id, days.map(Number)]));
}

async function readHours(db: Database, accountId: string) {
  const { rows } = await sql<{ hour: Date; calls: string }>`
    SELECT h.hour, coalesce(u.calls, 0) AS calls
    FROM (SELECT date_trunc('hour', quota_now(), 'UTC') AS last) n
    CROSS JOIN LATERAL generate_series(
      n.last - make_interval(hours => ${USAGE_LIMITS.hours - 1}::int), n.last, '1 hour') h(hour)
    LEFT JOIN usage_hours u ON u.account_id = ${accountId} AND u.hour = h.hour
    ORDER BY 1`.execute(db);
  return rows.map(({ hour, calls }) => ({ hour, calls: Number(calls) }));
}

function todayOf(day: string, used: number, limit: number | null, now: Date) {
  const startMs = Date.parse(`${day}T00:00:00Z`);
  const share = (now.getTime() - startMs) / 86_400_000;
  return {
    day,
    used,
    /** null = no daily limit; 0 = no subscription in force. */
    limit,
    remaining: limit === null ? null : Math.max(0, limit - used),
    /** The next 00:00 UTC. */
    resetsAt: new Date(startMs + 86_400_000),
    /** `used` divided by the elapsed share of the day, rounded; null in the first 5 % (72 min). */
    projected: share < PROJECTION_SHARE_MIN ? null : Math.round(used / share),
  };
}
