import { sql, type Transaction } from 'kysely';
import type { Tables } from '../../../lib/postgres/tables.ts';
import type { Seal } from '../../access/sealing.ts';
import { newSecret } from './secret.ts';

/** Secrets in force at a time: a message carries a signature of each. */
export const SECRETS_MAX = 3;

export const OVERLAP = { maxS: 7 * 86_400, defaultS: 86_400 } as const;

/** A secret in force, without its text. */
export interface SecretInForce {
  readonly createdAt: Date;
  /** undefined = until the next rotation. */
  readonly expiresAt: Date | undefined;
}

export type Rotated =
  | { readonly kind: 'ok'; readonly secret: string; readonly inForce: readonly SecretInForce[] }
  /** The maximum is in force already. */
  | { readonly kind: 'too_many'; readonly inForce: readonly SecretInForce[] };

interface Owner {
  readonly id: string;
  readonly accountId: string;
}

/** Creates a secret. @returns its text, which is shown only this once */
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
 * Creates the next secret; the previous one stays in force for the overlap. Without an overlap all
 * others end at once, including those of an earlier overlap. The caller has locked the account.
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

async function readInForce(tx: Transaction<Tables>, endpointId: string): Promise<SecretInForce[]> {
  const rows = await tx
    .selectFrom('webhook_secrets')
    .select(['created_at', 'expires_at'])
    .where('endpoint_id', '=', endpointId)
    .where(sql<boolean>`coalesce(expires_at > now(), true)`)
    .orderBy('id', 'desc')
    .execute();
  return rows.map((row) => ({ createdAt: row.created_at, expiresAt: row.expires_at ?? undefined }));
}
