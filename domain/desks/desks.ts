import { createHash } from 'node:crypto';
import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { AccountAccess } from '../access/account-access.ts';
import { tierOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import { TIERS } from '../access/tiers.ts';
import { lockAccount, readAccountAccess } from '../accounts/account-row.ts';
import { type AccountRequest, auditEntry, writeAudit } from '../accounts/audit.ts';
import { canonicalNetworks, NETWORKS_MAX, networksOf } from '../accounts/networks.ts';
import { type DeskRecord, readDesk, readDesks } from './desk-row.ts';

export const DESK_LIMITS = {
  /** Desks of an account that are not removed. */
  perAccountMax: 50,
  symbolsMax: 500,
  networksMax: NETWORKS_MAX,
  usageDaysMax: 400,
} as const;

/** What a desk may; undefined = what its account may. */
export interface DeskSettings {
  readonly callsPerDay?: number | undefined;
  readonly ratePerS?: number | undefined;
  /** By default twice the rate. */
  readonly burst?: number | undefined;
  readonly streamConnections?: number | undefined;
  readonly symbols?: readonly string[] | undefined;
  readonly allowCidrs?: readonly string[] | undefined;
  readonly expiresAt?: Date | undefined;
}

/** What the sender of a change knows of the desk; undefined = nothing. */
export type Precondition =
  | { readonly kind: 'absent' }
  | { readonly kind: 'one_of'; readonly versions: readonly string[] | '*' }
  | undefined;

type Unmet = { readonly kind: 'precondition_failed' } | { readonly kind: 'precondition_required' };

export type DeskPut =
  | { readonly kind: 'ok'; readonly desk: DeskRecord; readonly isNew: boolean }
  | { readonly kind: 'limit' }
  | { readonly kind: 'invalid'; readonly field: string; readonly reason: string }
  | Unmet;

/** undefined = the account has no such desk. */
export type DeskRemoved = { readonly kind: 'ok' } | Unmet | undefined;

interface DeskRequest extends AccountRequest {
  readonly name: string;
  readonly precondition: Precondition;
}

export type Desks = ReturnType<typeof createDesks>;

/** Desks of accounts, by name. Methods throw any database error. */
export function createDesks(db: Database) {
  return {
    /** By name, with what each has used today. */
    list: (accountId: string) => readDesks(db, accountId),

    get: (accountId: string, name: string) => readDesk(db, accountId, name),

    /** Calls by UTC day, oldest first; days without calls have 0. @param days 1 to 400 */
    usage: (deskId: string, days: number) => readUsage(db, deskId, days),

    /** Creates a desk, or replaces its settings as a whole. The same again changes nothing. */
    put: (wanted: DeskRequest & { readonly settings: DeskSettings }): Promise<DeskPut> =>
      inTurn(db, wanted.accountId, (tx) => putDesk(tx, wanted)),

    /** Removes a desk, and revokes its keys. */
    remove: (request: DeskRequest): Promise<DeskRemoved> =>
      inTurn(db, request.accountId, (tx) => removeDesk(tx, request)),
  };
}

/** Changes with every change of the settings. */
export function versionOf(desk: DeskRecord): string {
  const { id, callsPerDay, ratePerS, burst, streamConnections, symbols } = desk;
  const settings = { id, callsPerDay, ratePerS, burst, streamConnections, symbols };
  const { allowCidrs, expiresAt } = desk;
  const text = JSON.stringify({ ...settings, allowCidrs, expiresAt });
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

async function putDesk(
  tx: Transaction<Tables>,
  wanted: DeskRequest & { readonly settings: DeskSettings },
): Promise<DeskPut> {
  const { accountId, name, precondition, settings } = wanted;
  await lockAccount(tx, accountId);
  const before = await readDesk(tx, accountId, name);
  const unmet = unmetBy(before, precondition);
  if (unmet !== undefined) return unmet;
  const account = (await readAccountAccess(tx, accountId))!;
  const fault = faultOf(settings, account);
  if (fault !== undefined) return { kind: 'invalid', ...fault };
  const values = rowOf(settings);
  if (before === undefined) {
    if ((await readDesks(tx, accountId)).length >= DESK_LIMITS.perAccountMax) {
      return { kind: 'limit' };
    }
    const own = { id: newId('dsk'), account_id: accountId, name, created_by: wanted.actor };
    await tx
      .insertInto('desks')
      .values({ ...own, ...values })
      .execute();
  } else {
    const unlocked = tx.updateTable('desks').set(values).where('id', '=', before.id);
    await unlocked.where('removed_at', 'is', null).execute();
  }
  const desk = (await readDesk(tx, accountId, name))!;
  if (before === undefined || versionOf(before) !== versionOf(desk)) {
    const action = before === undefined ? 'desk.created' : 'desk.changed';
    const detail = { before: before && detailOf(before), after: detailOf(desk) };
    await writeAudit(tx, { ...auditEntry(wanted, action, desk.id), detail });
  }
  return { kind: 'ok', desk, isNew: before === undefined };
}

async function removeDesk(tx: Transaction<Tables>, request: DeskRequest): Promise<DeskRemoved> {
  const { accountId, name, precondition } = request;
  await lockAccount(tx, accountId);
  const desk = await readDesk(tx, accountId, name);
  if (desk === undefined) return undefined;
  const unmet = unmetBy(desk, precondition ?? { kind: 'one_of', versions: '*' });
  if (unmet !== undefined) return unmet;
  const now = sql<Date>`now()`;
  await tx.updateTable('desks').set({ removed_at: now }).where('id', '=', desk.id).execute();
  const { numUpdatedRows } = await tx
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('desk_id', '=', desk.id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  const detail = { name, keys_revoked: Number(numUpdatedRows) };
  await writeAudit(tx, { ...auditEntry(request, 'desk.removed', desk.id), detail });
  return { kind: 'ok' };
}

/** RFC 9110, section 13.1; 428 of RFC 6585 where a change names no state that it knows. */
function unmetBy(desk: DeskRecord | undefined, precondition: Precondition): Unmet | undefined {
  if (precondition === undefined) {
    return desk === undefined ? undefined : { kind: 'precondition_required' };
  }
  if (precondition.kind === 'absent') {
    return desk === undefined ? undefined : { kind: 'precondition_failed' };
  }
  const { versions } = precondition;
  const isKnown = desk !== undefined && (versions === '*' || versions.includes(versionOf(desk)));
  return isKnown ? undefined : { kind: 'precondition_failed' };
}

/** A desk has no more than its account. */
function faultOf(
  { callsPerDay, ratePerS, burst, streamConnections, allowCidrs = [], expiresAt }: DeskSettings,
  account: AccountAccess,
): { readonly field: string; readonly reason: string } | undefined {
  const plan = TIERS[tierOf(account, Date.now()) ?? 'basic'];
  const none = Number.POSITIVE_INFINITY;
  for (const [field, value, max] of [
    ['calls_per_day', callsPerDay, account.callsPerDay ?? plan.callsPerDay ?? none],
    ['rate_per_s', ratePerS, account.ratePerS ?? plan.ratePerS],
    ['burst', burst, account.rateBurst ?? plan.rateBurst],
    ['stream_connections', streamConnections, plan.streamConnections],
  ] as const) {
    if (value !== undefined && value > max) {
      return { field, reason: `must be at most ${max}, the limit of the account.` };
    }
  }
  if (burst !== undefined && ratePerS === undefined) {
    return { field: 'burst', reason: 'needs `rate_per_s`.' };
  }
  if (expiresAt !== undefined && !(expiresAt.getTime() > Date.now())) {
    return { field: 'expires_at', reason: 'must be a time in the future.' };
  }
  const networks = canonicalNetworks(allowCidrs);
  return networks.ok ? undefined : { field: 'allow_cidrs', reason: networks.reason };
}

function rowOf(settings: DeskSettings) {
  const { ratePerS, symbols, allowCidrs = [] } = settings;
  return {
    calls_per_day: settings.callsPerDay ?? null,
    rate_per_s: ratePerS ?? null,
    rate_burst: ratePerS === undefined ? null : (settings.burst ?? 2 * ratePerS),
    connections_max: settings.streamConnections ?? null,
    symbols: symbols === undefined ? null : [...new Set(symbols)].sort(),
    allow_cidrs: networksOf(allowCidrs),
    expires_at: settings.expiresAt ?? null,
  };
}

function detailOf({ name, callsPerDay, ratePerS, burst, ...desk }: DeskRecord) {
  const { streamConnections, symbols, allowCidrs, expiresAt } = desk;
  return {
    name,
    calls_per_day: callsPerDay,
    rate_per_s: ratePerS,
    burst,
    stream_connections: streamConnections,
    symbols: symbols?.length,
    allow_cidrs: allowCidrs,
    expires_at: expiresAt,
  };
}

async function readUsage(db: Database, deskId: string, days: number) {
  const { rows } = await sql<{ day: string; calls: string }>`
    SELECT to_char(d.day, 'YYYY-MM-DD') AS day, coalesce(u.used, 0) AS calls
    FROM (SELECT (quota_now() AT TIME ZONE 'UTC')::date AS today) n
    CROSS JOIN LATERAL (SELECT n.today - i AS day FROM generate_series(0, ${days - 1}::int) i) d
    LEFT JOIN desk_usage_days u ON u.desk_id = ${deskId} AND u.day = d.day
    ORDER BY d.day`.execute(db);
  return rows.map(({ day, calls }) => ({ day, calls: Number(calls) }));
}
