import { sql, type Transaction } from 'kysely';
import { SCOPES, type Scope } from '../access/access.ts';
import { newId } from '../access/id.ts';
import { hashKey, keyHint, newKey } from '../access/key-format.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { canonicalNetworks } from './key-networks.ts';

/** A key as its owner sees it; the key itself is shown once, when it is made. */
export interface KeyRecord {
  readonly id: string;
  readonly accountId: string;
  /** `pil_live_…ab12` */
  readonly hint: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Canonical networks; empty = it works from everywhere. */
  readonly allowCidrs: readonly string[];
  readonly createdAt: Date;
  readonly createdBy: string;
  readonly expiresAt: Date | undefined;
  readonly revokedAt: Date | undefined;
  /** Id of the key that a rotation made in its place. */
  readonly replacedBy: string | undefined;
  readonly lastUsedAt: Date | undefined;
  readonly lastUsedAddress: string | undefined;
  /** Neither revoked nor expired when it was read. */
  readonly live: boolean;
}

/** What a new key's row is made of. */
export interface NewKeyRow {
  readonly actor: string;
  readonly accountId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt?: Date | undefined;
  readonly allowCidrs?: readonly string[] | undefined;
}

/** Neither revoked nor expired. */
export const LIVE = sql<boolean>`(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))`;

export function selectKeys(db: Database | Transaction<Tables>) {
  return db.selectFrom('api_keys').selectAll().select(LIVE.as('live'));
}

/** undefined also when it is another account's. */
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
    .where(LIVE, '=', true)
    .executeTakeFirstOrThrow();
  return Number(live);
}

/** Makes a key and its row; settings were checked. @returns the key, which is shown once */
export async function insertKey(
  tx: Transaction<Tables>,
  pepper: Buffer,
  wanted: NewKeyRow,
): Promise<{ key: string; record: KeyRecord }> {
  const key = newKey();
  const row = await tx
    .insertInto('api_keys')
    .values({
      id: newId('key'),
      account_id: wanted.accountId,
      hash: hashKey(key, pepper),
      hint: keyHint(key),
      name: wanted.name,
      scopes: distinct(wanted.scopes),
      allow_cidrs: networksOf(wanted.allowCidrs ?? []),
      created_by: wanted.actor,
      expires_at: wanted.expiresAt ?? null,
    })
    .returningAll()
    .returning(LIVE.as('live'))
    .executeTakeFirstOrThrow();
  return { key, record: recordOf(row) };
}

/** @throws when they were not checked before */
export function networksOf(texts: readonly string[]): string[] {
  const read = canonicalNetworks(texts);
  if (!read.ok) throw new Error(`networks were not checked: ${read.reason}`);
  return [...read.networks];
}

export function distinct(scopes: readonly Scope[]): Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope));
}

type KeyRow = Awaited<ReturnType<ReturnType<typeof selectKeys>['executeTakeFirstOrThrow']>>;

export function recordOf(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    hint: row.hint,
    name: row.name,
    scopes: row.scopes as Scope[],
    allowCidrs: row.allow_cidrs,
    createdAt: row.created_at,
    createdBy: row.created_by,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    replacedBy: row.replaced_by ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    lastUsedAddress: row.last_used_address ?? undefined,
    live: row.live,
  };
}
