import { sql, type Transaction } from 'kysely';
import { Secret } from 'otpauth';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { hashToken } from './secret-token.ts';

export const RECOVERY_CODES = 10;
/** Four groups of five characters of base32: 100 random bits. */
export const RECOVERY_CODE_PATTERN = '[a-z2-7]{5}(?:-[a-z2-7]{5}){3}';
const CODE_BYTES = 13;
const CODE_CHARS = 20;

/** Replaces the recovery codes of a user. @returns the new ones, which are shown only this once */
export async function replaceRecoveryCodes(
  tx: Transaction<Tables>,
  userId: string,
): Promise<readonly string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newCode);
  await tx.deleteFrom('recovery_codes').where('user_id', '=', userId).execute();
  await tx
    .insertInto('recovery_codes')
    .values(codes.map((code) => ({ hash: hashToken(code), user_id: userId })))
    .execute();
  return codes;
}

/** Uses up a recovery code. @returns how many are left; undefined = a wrong or used code */
export async function useRecoveryCode(
  tx: Transaction<Tables>,
  userId: string,
  code: string,
): Promise<number | undefined> {
  const used = await tx
    .deleteFrom('recovery_codes')
    .where('user_id', '=', userId)
    .where('hash', '=', hashToken(code))
    .executeTakeFirst();
  return used.numDeletedRows === 0n ? undefined : countRecoveryCodes(tx, userId);
}

export async function countRecoveryCodes(
  on: Database | Transaction<Tables>,
  userId: string,
): Promise<number> {
  const { left } = await on
    .selectFrom('recovery_codes')
    .select(sql<string>`count(*)`.as('left'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow();
  return Number(left);
}

function newCode(): string {
  const text = new Secret({ size: CODE_BYTES }).base32.toLowerCase().slice(0, CODE_CHARS);
  return text.match(/.{5}/g)!.join('-');
}
