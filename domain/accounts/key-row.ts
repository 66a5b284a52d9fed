import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import { hashKey, keyHint, newKey } from '../access/key-format.ts';
import type { Pepper } from '../access/pepper.ts';
import { SCOPES, type Scope } from '../access/scopes.ts';
import { networksOf } from './networks.ts';

/** A key as its owner sees it; the secret itself is shown once, when the key is made. */
export type KeyRecord = ReturnType<typeof recordOf>;

/** Settings of a new key. */
export interface NewKeyRow {
  readonly actor: string;
  readonly accountId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt?: Date | undefined;
  readonly allowCidrs?: readonly string[] | undefined;
  /** Id of the desk that the key belongs to; undefined = none. */
  readonly deskId?: string | undefined;
}

/** Neither revoked nor expired. */
export const IS_LIVE_KEY = sql<boolean>`(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))`;

const DESK_NAME = sql<string | null>`(SELECT d.name FROM desks d WHERE d.id = api_keys.desk_id)`.as(
  'desk',
);

export function selectKeys(db: Database | Transaction<Tables>) {
  return db.selectFrom('api_keys').selectAll().select(IS_LIVE_KEY.as('live')).select(DESK_NAME);
}

/** Returns undefined also for another account's key. */
export async function readKey(
  db: Database | Transaction<Tables>,
  accountId: string,
  keyId: string,
): Promise<KeyRecord | undefined> {
  const row = await selectKeys(db)
    .where('id', '=', keyId)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row === undefined ? undefined : recordOf(row);
}

export async function countLive(tx: Transaction<Tables>, accountId: string): Promise<number> {
  const { live } = await tx
    .selectFrom('api_keys')
    .select(sql<string>`count(*)`.as('live'))
    .where('account_id', '=', accountId)
    .where(IS_LIVE_KEY, '=', true)
    .executeTakeFirstOrThrow();
  return Number(live);
}

/** Makes a key and its row from checked settings. @returns the key, which is shown once */
export async function insertKey(
  tx: Transaction<Tables>,
  pepper: Pepper,
  wanted: NewKeyRow,
): Promise<{ key: string; record: KeyRecord }> {
  const key = newKey();
  const { version, bytes } = pepper.current();
  const row = await tx
    .insertInto('api_keys')
    .values({
      id: newId('key'),
      account_id: wanted.accountId,
      hash: hashKey(key, bytes),
      pepper: version,
      hint: keyHint(key),
      name: wanted.name,
      scopes: distinct(wanted.scopes),
      allow_cidrs: networksOf(wanted.allowCidrs ?? []),
      created_by: wanted.actor,
      expires_at: wanted.expiresAt ?? null,
      desk_id: wanted.deskId ?? null,
    })
    .returningAll()
    .returning(IS_LIVE_KEY.as('live'))
    .returning(DESK_NAME)
    .executeTakeFirstOrThrow();
  return { key, record: recordOf(row) };
}

export function distinct(scopes: readonly Scope[]): Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope));
}

export function recordOf(
  row: Awaited<ReturnType<ReturnType<typeof selectKeys>['executeTakeFirstOrThrow']>>,
) {
  return {
    id: row.id,
    accountId: row.account_id,
    hint: row.hint,
    name: row.name,
    scopes: row.scopes as Scope[],
    allowCidrs: row.allow_cidrs,
    deskId: row.desk_id ?? undefined,
    /** Name of the desk. */
    desk: row.desk ?? undefined,
    createdAt: row.created_at,
    createdBy: row.created_by,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    /** Id of the key that replaced this one in a rotation. */
    replacedBy: row.replaced_by ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    lastUsedAddress: row.last_used_address ?? undefined,
    /** Neither revoked nor expired at the time of reading. */
    live: row.live,
  };
}
