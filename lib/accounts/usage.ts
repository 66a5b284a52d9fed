import { sql } from 'kysely';
import { tierOf } from '../access/entitlement.ts';
import { TIERS } from '../access/tiers.ts';
import type { Database } from '../postgres/database.ts';
import { readAccountAccess } from './account-row.ts';

export const USAGE_LIMITS = { daysMax: 400, keysMax: 200, endpointsMax: 100 } as const;

/** Earlier in the day a few calls would be projected to many. */
const PROJECTION_SHARE_MIN = 0.05;

/** Use of an account. Days are UTC, `YYYY-MM-DD`, by PostgreSQL's clock. */
export interface Usage {
  readonly today: {
    readonly day: string;
    readonly used: number;
    /** null = no daily limit; 0 = no subscription in force. */
    readonly limit: number | null;
    readonly remaining: number | null;
    /** The next 00:00 UTC. */
    readonly resetsAt: Date;
    /** used / elapsed share of the day, rounded; null in the first 5 % (72 min) of the day. */
    readonly projected: number | null;
  };
  /** From the first day asked for to today; days without calls are there with 0. */
  readonly days: readonly { readonly day: string; readonly calls: number }[];
  /** Over those days, most calls first, at most 200; a deleted key has neither name nor hint. */
  readonly keys: readonly {
    readonly keyId: string;
    readonly name: string | null;
    readonly hint: string | null;
    readonly calls: number;
  }[];
  /** Over those days, most calls first, at most 100. */
  readonly endpoints: readonly { readonly endpoint: string; readonly calls: number }[];
}

/**
 * Reads the use of an account. Keys and endpoints are written about a second later than the count
 * of the day, and keep calls that were given back.
 * @param days 1 to 400, today included
 * @returns undefined when there is no such account
 */
export async function readUsage(
  db: Database,
  accountId: string,
  { days }: { readonly days: number },
): Promise<Usage | undefined> {
  const span = Math.max(1, Math.min(Math.trunc(days), USAGE_LIMITS.daysMax));
  // One snapshot: today's count and the list of days agree.
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
      days: rows.map((row) => ({ day: row.day, calls: Number(row.calls) })),
      keys: keys.map((row) => ({ ...row, calls: Number(row.calls) })),
      endpoints: endpoints.map((row) => ({ ...row, calls: Number(row.calls) })),
    };
  });
}

function todayOf(day: string, used: number, limit: number | null, now: Date): Usage['today'] {
  const startMs = Date.parse(`${day}T00:00:00Z`);
  const share = (now.getTime() - startMs) / 86_400_000;
  return {
    day,
    used,
    limit,
    remaining: limit === null ? null : Math.max(0, limit - used),
    resetsAt: new Date(startMs + 86_400_000),
    projected: share < PROJECTION_SHARE_MIN ? null : Math.round(used / share),
  };
}
