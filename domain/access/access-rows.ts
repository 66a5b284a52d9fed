import type { StatementPool } from '../../lib/postgres/statement-pool.ts';
import type { AccountAccess, DeskAccess, KeyAccess } from './account-access.ts';
import { type AllowList, parseAllowList } from './allow-list.ts';
import type { Scope } from './scopes.ts';
import type { Tier } from './tiers.ts';

/** A key with its account, whether or not the key is still valid. */
export interface FoundKey {
  readonly key: KeyAccess;
  /** Networks of the key and of its desk: an address must be in both. */
  readonly allowLists: readonly AllowList[];
  readonly isRevoked: boolean;
  /** Version of the pepper that the hash was made under. */
  readonly pepper: number;
  /** Whether the owner accepts only authentication schemes in place of this key. */
  readonly isSecretRefused: boolean;
}

/** A row of `ACCOUNT_ACCESS`. */
export interface AccountAccessRow {
  readonly account_id: string;
  readonly account_name: string;
  readonly account_status: AccountAccess['status'];
  readonly suspended_reason: string | null;
  readonly rate_per_s: number | null;
  readonly rate_burst: number | null;
  readonly calls_per_day: number | null;
  readonly keys_refused: boolean;
  /** null = never subscribed; then the columns below are null too. */
  readonly tier: Tier | null;
  readonly subscription_status: 'active' | 'past_due' | 'ended';
  readonly past_due_since: Date | null;
  readonly period_end: Date;
  readonly cancel_at_period_end: boolean;
  readonly next_tier: Tier | null;
}

/** A row of `DESK_COLUMNS`. */
export interface DeskRow {
  /** null = the key belongs to no desk; then the columns below are null too. */
  readonly desk_id: string | null;
  readonly desk_name: string;
  readonly desk_calls: number | null;
  readonly desk_rate: number | null;
  readonly desk_burst: number | null;
  readonly desk_connections: number | null;
  readonly desk_symbols: readonly string[] | null;
  readonly desk_cidrs: readonly string[] | null;
  readonly desk_expires_at: Date | null;
  readonly desk_removed_at: Date | null;
}

interface KeyAccessRow extends AccountAccessRow, DeskRow {
  readonly key_id: string;
  readonly hint: string;
  readonly scopes: readonly Scope[];
  readonly allow_cidrs: readonly string[];
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly pepper: number;
  readonly secret_refused: boolean;
}

/** Columns of `AccountAccessRow`, of accounts `a` and subscriptions `s`. */
export const ACCOUNT_COLUMNS = `
  a.id AS account_id, a.name AS account_name, a.status AS account_status,
  a.suspended_reason, a.rate_per_s, a.rate_burst, a.calls_per_day, a.keys_refused,
  s.tier, s.status AS subscription_status, s.past_due_since, s.period_end, s.cancel_at_period_end,
  s.next_tier`;

/** Columns of `DeskRow`, of desks `d`, which are joined to keys `k`. */
export const DESK_COLUMNS = `
  d.id AS desk_id, d.name AS desk_name, d.calls_per_day AS desk_calls, d.rate_per_s AS desk_rate,
  d.rate_burst AS desk_burst, d.connections_max AS desk_connections, d.symbols AS desk_symbols,
  d.allow_cidrs AS desk_cidrs, d.expires_at AS desk_expires_at, d.removed_at AS desk_removed_at`;
export const JOIN_DESK = 'LEFT JOIN desks d ON d.id = k.desk_id';

const READ_KEY = `
  SELECT k.id AS key_id, k.hint, k.scopes, k.allow_cidrs, k.expires_at, k.revoked_at, k.pepper,
    k.secret_refused, ${DESK_COLUMNS}, ${ACCOUNT_COLUMNS}
  FROM api_keys k
  ${JOIN_DESK}
  JOIN accounts a ON a.id = k.account_id
  LEFT JOIN subscriptions s ON s.account_id = a.id`;

/** Selects accounts `a` as `AccountAccessRow`. */
export const ACCOUNT_ACCESS = `
  SELECT ${ACCOUNT_COLUMNS}
  FROM accounts a LEFT JOIN subscriptions s ON s.account_id = a.id`;

/** Reads a key by its possible hashes or its id. @throws any database error */
export async function findKey(
  pool: StatementPool,
  by: { readonly hashes: readonly Buffer[] } | { readonly id: string },
): Promise<FoundKey | undefined> {
  const [row] =
    'hashes' in by
      ? await pool.query<KeyAccessRow>(`${READ_KEY} WHERE k.hash = ANY ($1)`, [by.hashes])
      : await pool.query<KeyAccessRow>(`${READ_KEY} WHERE k.id = $1`, [by.id]);
  if (row === undefined) return undefined;
  return {
    key: {
      id: row.key_id,
      hint: row.hint,
      scopes: row.scopes,
      expiresAtMs: earliestMs(row.expires_at, row.desk_expires_at),
      account: accountAccessOf(row),
      desk: deskAccessOf(row),
    },
    allowLists: [row.allow_cidrs, row.desk_cidrs ?? []].map(parseAllowList),
    isRevoked: row.revoked_at !== null || row.desk_removed_at !== null,
    pepper: row.pepper,
    isSecretRefused: row.keys_refused || row.secret_refused,
  };
}

/** The desk of a key; undefined = none. */
export function deskAccessOf(row: DeskRow): DeskAccess | undefined {
  if (row.desk_id === null) return undefined;
  const { desk_rate: perS, desk_burst: burst } = row;
  return {
    id: row.desk_id,
    name: row.desk_name,
    callsPerDay: row.desk_calls ?? undefined,
    rate: perS === null || burst === null ? undefined : { perS, burst },
    connectionsMax: row.desk_connections ?? undefined,
    symbols: row.desk_symbols === null ? undefined : new Set(row.desk_symbols),
  };
}

/** The earliest of several times, Unix ms; undefined = never. */
export function earliestMs(...times: readonly (Date | null)[]): number | undefined {
  const ends = times.flatMap((time) => time?.getTime() ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Reads an account's access. @throws any database error */
export async function findAccount(
  pool: StatementPool,
  accountId: string,
): Promise<AccountAccess | undefined> {
  const [row] = await pool.query<AccountAccessRow>(`${ACCOUNT_ACCESS} WHERE a.id = $1`, [
    accountId,
  ]);
  return row === undefined ? undefined : accountAccessOf(row);
}

/** Converts a row of `ACCOUNT_ACCESS`. */
export function accountAccessOf(row: AccountAccessRow): AccountAccess {
  return {
    id: row.account_id,
    name: row.account_name,
    status: row.account_status,
    suspendedReason: row.suspended_reason ?? undefined,
    subscription:
      row.tier === null
        ? undefined
        : {
            tier: row.tier,
            status: row.subscription_status,
            pastDueSinceMs: row.past_due_since?.getTime(),
            periodEndMs: row.period_end.getTime(),
            cancelAtPeriodEnd: row.cancel_at_period_end,
            nextTier: row.next_tier ?? undefined,
          },
    ratePerS: row.rate_per_s ?? undefined,
    rateBurst: row.rate_burst ?? undefined,
    callsPerDay: row.calls_per_day ?? undefined,
    keysRefused: row.keys_refused,
  };
}
