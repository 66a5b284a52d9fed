import { sql, type Transaction } from 'kysely';
import { originOf } from '../../../domain/webhooks/endpoints/origin.ts';
import type { DisabledReason } from '../../../domain/webhooks/endpoints/webhook-endpoint.ts';
import { WARN_PERCENTS } from '../../../domain/webhooks/events/event-catalogue.ts';
import type { Log } from '../../../lib/log/log.ts';
import { createCounter } from '../../../lib/metrics/metrics.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';
import { type Repetition, runEvery } from '../../../lib/timing/run-every.ts';
import type { AttemptFailure } from './attempt-result.ts';

const disabledTotal = createCounter({
  name: 'pillole_webhook_disabled_endpoints_total',
  help: 'Endpoints that this process has disabled: failing = no success for 76 h, gone = answered 410.',
  labelNames: ['reason'] as const,
});

interface FailingRow extends Record<'id' | 'account_id' | 'url', string> {
  readonly failing_since: Date;
  readonly failing_s: number;
}

/** Checks within the time to disabling, but at most one a second. */
const CHECKS = 1_000;
const INTERVAL_MAX_MS = 60_000;
const ROWS_MAX = 1_000;

/** Warns owners of endpoints that keep failing, and finally disables the endpoints. */
export function startFailingNotices(db: Database, log: Log, disableAfterS: number): Repetition {
  const everyMs = Math.min(INTERVAL_MAX_MS, Math.max(1_000, (disableAfterS / CHECKS) * 1_000));
  const run = () => notifyFailing(db, disableAfterS);
  return runEvery({ name: 'notices of failing endpoints', everyMs, log, run });
}

/**
 * One check: at 50, 70 and 90 % of the time it raises `endpoint.failing`, once each, then disables.
 * Several processes may check at once. @throws any database error
 */
export async function notifyFailing(db: Database, disableAfterS: number): Promise<void> {
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
      await raiseEvent(tx, row, 'endpoint.failing', `${percent}`, {
        endpoint: row.id,
        url: originOf(row.url),
        failing_since: row.failing_since,
        percent,
        disabled_at: new Date(row.failing_since.getTime() + disableAfterS * 1_000),
        ...(await lastFailure(tx, row.id)),
      });
    });
  }
}

/**
 * Disables an endpoint and notifies its owner; no effect on an endpoint that is disabled already.
 * @param options since: no effect either if the endpoint has succeeded since then
 */
export async function disableEndpoint(
  db: Database,
  endpointId: string,
  reason: Exclude<DisabledReason, 'owner'>,
  { last, since }: { readonly last?: AttemptFailure; readonly since?: Date } = {},
): Promise<void> {
  const isDisabled = await db.transaction().execute(async (tx) => {
    const row = await tx
      .updateTable('webhook_endpoints')
      .set({ status: 'disabled', disabled_reason: reason })
      .where('id', '=', endpointId)
      .where('status', '<>', 'disabled')
      .$if(since !== undefined, (query) => query.where('failing_since', '=', since!))
      .returning(['id', 'account_id', 'url', 'failing_since'])
      .executeTakeFirst();
    if (row === undefined) return false;
    const occurrence = `${reason}/${Date.now()}`;
    const known = last && { last_status: last.status ?? null, last_reason: last.reason };
    await raiseEvent(tx, row, 'endpoint.disabled', occurrence, {
      endpoint: row.id,
      url: originOf(row.url),
      reason,
      failing_since: row.failing_since,
      ...(known ?? (await lastFailure(tx, row.id))),
      recover: `POST /api/webhooks/${row.id}/recover`,
    });
    await tx
      .insertInto('audit_log')
      .values({
        account_id: row.account_id,
        actor: 'system',
        action: 'webhook.disabled',
        target: row.id,
        detail: JSON.stringify({ reason }),
      })
      .execute();
    return true;
  });
  if (isDisabled) disabledTotal.inc({ reason });
}

/** `last_status` and `last_reason` of an event. */
async function lastFailure(tx: Transaction<Tables>, endpointId: string) {
  const row = await tx
    .selectFrom('webhook_deliveries')
    .select(['last_status', 'last_reason'])
    .where('endpoint_id', '=', endpointId)
    .where('last_reason', 'is not', null)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ?? { last_status: null, last_reason: null };
}

/** Deduplicated from when the endpoint began to fail: the next failing period raises events again. */
async function raiseEvent(
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
