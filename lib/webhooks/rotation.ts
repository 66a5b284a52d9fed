import { sql, type Transaction } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import type { Seal } from './sealing.ts';
import { newSecret } from './secret.ts';

/** Secrets that sign at a time: a message carries a signature of each. */
export const SECRETS_MAX = 3;

export const OVERLAP = { maxS: 7 * 86_400, defaultS: 86_400 } as const;

/** A secret, without what it is. */
export interface SecretInForce {
  readonly createdAt: Date;
  /** undefined = until the next rotation. */
  readonly expiresAt: Date | undefined;
}

export type Rotated =
  | { readonly kind: 'ok'; readonly secret: string; readonly inForce: readonly SecretInForce[] }
  /** So many are in force already. */
  | { readonly kind: 'too_many'; readonly inForce: readonly SecretInForce[] };

interface Owner {
  readonly id: string;
  readonly accountId: string;
}

/** Makes a secret. @returns it as its owner sees it, this once */
export async function insertSecret(
  tx: Transaction<Tables>,
  seal: Seal,
  { id, accountId }: Owner,
): Promise<string> {
  const { text, bytes } = newSecret();
  const row = { endpoint_id: id, account_id: accountId, sealed: seal.seal(bytes, id) };
  await tx
    .insertInto('webhook_secrets')
    .values({ ...row, created_at: sql<Date>`clock_timestamp()`, expires_at: null })
    .execute();
  return text;
}

/**
 * Makes the next secret; the one before signs on for the overlap. Without an overlap all others end
 * at once, also those of an earlier one. The caller has locked the account.
 */
export async function rotateSecret(
  tx: Transaction<Tables>,
  seal: Seal,
  { overlapS, ...owner }: Owner & { readonly overlapS: number },
): Promise<Rotated> {
  const over = tx.deleteFrom('webhook_secrets').where('endpoint_id', '=', owner.id);
  if (overlapS === 0) await over.execute();
  else await over.where('expires_at', '<=', sql<Date>`now()`).execute();
  const inForce = await readInForce(tx, owner.id);
  if (inForce.length >= SECRETS_MAX) return { kind: 'too_many', inForce };
  await tx
    .updateTable('webhook_secrets')
    .set({ expires_at: sql<Date>`now() + make_interval(secs => ${overlapS})` })
    .where('endpoint_id', '=', owner.id)
    .where('expires_at', 'is', null)
    .execute();
  const secret = await insertSecret(tx, seal, owner);
  return { kind: 'ok', secret, inForce: await readInForce(tx, owner.id) };
}

async function readInForce(
  tx: Transaction<Tables>,
  endpointId: string,
): Promise<readonly SecretInForce[]> {
  const rows = await selectInForce(tx, endpointId).select(['created_at', 'expires_at']).execute();
  return rows.map((row) => ({
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
  }));
}

function selectInForce(db: Database | Transaction<Tables>, endpointId: string) {
  return db
    .selectFrom('webhook_secrets')
    .where('endpoint_id', '=', endpointId)
    .where(sql<boolean>`coalesce(expires_at > now(), true)`)
    .orderBy('id', 'desc');
}
