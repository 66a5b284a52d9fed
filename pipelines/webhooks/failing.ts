import { sql, type Transaction } from 'kysely';
import type { Log } from '../../lib/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { type Repetition, repeat } from '../../lib/repeat.ts';
import type { DisabledReason } from '../../lib/webhooks/endpoint.ts';
import { originOf } from '../../lib/webhooks/origin.ts';
import { WARN_PERCENTS } from '../../lib/webhooks/schedule.ts';

/** What was wrong with the last attempt. */
export interface LastFailure {
  readonly status: number | undefined;
  readonly reason: string;
}

interface FailingRow {
  readonly id: string;
  readonly account_id: string;
  readonly url: string;
  readonly failing_since: Date;
  readonly failing_s: number;
}

/** Notices come this many times within the time to disabling; never more often than each second. */
const LOOKS = 1_000;
const INTERVAL_MAX_MS = 60_000;
const ROWS_MAX = 1_000;

/** Warns owners of endpoints that fail and fail, and disables those in the end. */
export function startFailing(db: Database, log: Log, disableAfterS: number): Repetition {
  const everyMs = Math.min(INTERVAL_MAX_MS, Math.max(1_000, (disableAfterS / LOOKS) * 1_000));
  return repeat({
    ...{ name: 'notices of failing endpoints', everyMs, log },
    run: () => tellFailing(db, disableAfterS),
  });
}

/**
 * One look: at 50, 70 and 90 % of the time an `endpoint.failing` each, once, and then the end.
 * Several processes may look at once. @throws what the database says
 */
export async function tellFailing(db: Database, disableAfterS: number): Promise<void> {
  const { rows } = await sql<FailingRow>`
    SELECT id, account_id, url, failing_since,
      extract(epoch FROM now() - failing_since)::double precision AS failing_s
    FROM webhook_endpoints
    WHERE status = 'enabled' AND failing_since IS NOT NULL
      AND failing_since <= now() - make_interval(secs => ${(disableAfterS * WARN_PERCENTS[0]) / 100})
    ORDER BY failing_since LIMIT ${ROWS_MAX}`.execute(db);
  for (const row of rows) {
    if (row.failing_s >= disableAfterS) {
      await disableEndpoint(db, row.id, 'failing', { since: row.failing_since });
      continue;
    }
    const percent = WARN_PERCENTS.filter((at) => row.failing_s * 100 >= at * disableAfterS).at(-1)!;
    await db.transaction().execute(async (tx) => {
      await raise(tx, row, 'endpoint.failing', `${percent}`, {
        ...{ endpoint: row.id, url: originOf(row.url), failing_since: row.failing_since, percent },
        disabled_at: new Date(row.failing_since.getTime() + disableAfterS * 1_000),
        ...lastOf(await lastFailure(tx, row.id)),
      });
    });
  }
}

/**
 * Disables an endpoint for good and tells its owner; nothing where it is disabled already.
 * @param options since: nothing either where it has succeeded since then
 */
export async function disableEndpoint(
  db: Database,
  endpointId: string,
  reason: Exclude<DisabledReason, 'owner'>,
  { last, since }: { readonly last?: LastFailure; readonly since?: Date } = {},
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const row = await tx
      .updateTable('webhook_endpoints')
      .set({ status: 'disabled', disabled_reason: reason })
      .where('id', '=', endpointId)
      .where('status', '<>', 'disabled')
      .$if(since !== undefined, (query) => query.where('failing_since', '=', since!))
      .returning(['id', 'account_id', 'url', 'failing_since'])
      .executeTakeFirst();
    if (row === undefined) return;
    const occurrence = `${reason}/${Date.now()}`;
    await raise(tx, row, 'endpoint.disabled', occurrence, {
      ...{ endpoint: row.id, url: originOf(row.url), reason, failing_since: row.failing_since },
      ...lastOf(last ?? (await lastFailure(tx, row.id))),
      recover: `POST /api/webhooks/${row.id}/recover`,
    });
    await tx
      .insertInto('audit_log')
      .values({
        account_id: row.account_id,
        ...{ actor: 'system', action: 'webhook.disabled', target: row.id },
        detail: JSON.stringify({ reason }),
      })
      .execute();
  });
}

async function lastFailure(
  tx: Transaction<Tables>,
  endpointId: string,
): Promise<LastFailure | undefined> {
  const row = await tx
    .selectFrom('webhook_deliveries')
    .select(['last_status', 'last_reason'])
    .where('endpoint_id', '=', endpointId)
    .where('last_reason', 'is not', null)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return { status: row.last_status ?? undefined, reason: row.last_reason! };
}

function lastOf(last: LastFailure | undefined) {
  return { last_status: last?.status ?? null, last_reason: last?.reason ?? null };
}

/** An occurrence counts from when the endpoint began to fail: the next time it is told anew. */
async function raise(
  tx: Transaction<Tables>,
  row: Pick<FailingRow, 'id' | 'account_id'> & { readonly failing_since: Date | null },
  type: 'endpoint.failing' | 'endpoint.disabled',
  occurrence: string,
  data: object,
): Promise<void> {
  const since = row.failing_since?.getTime() ?? 0;
  await tx
    .insertInto('account_events')
    .values({
      account_id: row.account_id,
      type,
      dedupe: `${type}/${row.id}/${since}/${occurrence}`,
      data: JSON.stringify(data),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
