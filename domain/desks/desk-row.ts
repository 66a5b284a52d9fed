import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';

/** A desk as its account sees it; undefined = the limit of the account. */
export type DeskRecord = Awaited<ReturnType<typeof readDesks>>[number];

/** The desks of an account that are not removed, by name. */
export async function readDesks(db: Database | Transaction<Tables>, accountId: string) {
  const rows = await selectDesks(db, accountId).orderBy('name').execute();
  return rows.map(recordOf);
}

/** @returns undefined also for a removed desk, and for that of another account */
export async function readDesk(
  db: Database | Transaction<Tables>,
  accountId: string,
  name: string,
): Promise<DeskRecord | undefined> {
  const row = await selectDesks(db, accountId).where('name', '=', name).executeTakeFirst();
  return row === undefined ? undefined : recordOf(row);
}

function selectDesks(db: Database | Transaction<Tables>, accountId: string) {
  return db
    .selectFrom('desks as d')
    .selectAll('d')
    .select(
      sql<string>`(SELECT count(*) FROM api_keys k WHERE k.desk_id = d.id AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > now()))`.as('live_keys'),
    )
    .select(
      sql<string>`(SELECT count(*) FROM stream_sessions s WHERE s.desk_id = d.id)`.as(
        'open_sockets',
      ),
    )
    .select(
      sql<string>`coalesce((SELECT u.used FROM desk_usage_days u WHERE u.desk_id = d.id
        AND u.day = (quota_now() AT TIME ZONE 'UTC')::date), 0)`.as('used_today'),
    )
    .where('d.account_id', '=', accountId)
    .where('d.removed_at', 'is', null);
}

function recordOf(
  row: Awaited<ReturnType<ReturnType<typeof selectDesks>['executeTakeFirstOrThrow']>>,
) {
  return {
    id: row.id,
    name: row.name,
    callsPerDay: row.calls_per_day ?? undefined,
    ratePerS: row.rate_per_s ?? undefined,
    burst: row.rate_burst ?? undefined,
    streamConnections: row.connections_max ?? undefined,
    symbols: row.symbols ?? undefined,
    allowCidrs: row.allow_cidrs,
    expiresAt: row.expires_at ?? undefined,
    createdAt: row.created_at,
    createdBy: row.created_by,
    liveKeys: Number(row.live_keys),
    /** Up to half a second old, and for some seconds those of a killed process. */
    openSockets: Number(row.open_sockets),
    usedToday: Number(row.used_today),
  };
}
