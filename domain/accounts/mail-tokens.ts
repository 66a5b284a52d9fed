import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { hashToken, newToken } from './secret-token.ts';

/** Lifetime of a mailed token. */
const TOKEN_LIFE_S = { verify_email: 86_400, reset_password: 1_800 } as const;

/** The action that a mailed token permits. */
export type TokenPurpose = keyof typeof TOKEN_LIFE_S;

/** Makes a single-use token for a mail; the table holds only its hash. */
export async function issueMailToken(
  db: Database,
  userId: string,
  purpose: TokenPurpose,
): Promise<string> {
  const token = newToken();
  const expiresAt = new Date(Date.now() + TOKEN_LIFE_S[purpose] * 1_000);
  await db
    .insertInto('mail_tokens')
    .values({ hash: hashToken(token), user_id: userId, purpose, expires_at: expiresAt })
    .execute();
  return token;
}

/** Uses up a mailed token, even an expired one. @returns its user; undefined = not valid */
export async function useMailToken(
  tx: Transaction<Tables>,
  token: string,
  purpose: TokenPurpose,
): Promise<string | undefined> {
  const row = await tx
    .deleteFrom('mail_tokens')
    .where('hash', '=', hashToken(token))
    .where('purpose', '=', purpose)
    .returning(['user_id', 'expires_at'])
    .executeTakeFirst();
  return row !== undefined && row.expires_at.getTime() > Date.now() ? row.user_id : undefined;
}

/** The user of a valid token, which stays valid. */
export function userOfToken(db: Database, token: string, purpose: TokenPurpose) {
  return db
    .selectFrom('mail_tokens as t')
    .innerJoin('users as u', 'u.id', 't.user_id')
    .select(['u.id', 'u.account_id as accountId', 'u.email', 'u.password_hash'])
    .where('t.hash', '=', hashToken(token))
    .where('t.purpose', '=', purpose)
    .where('t.expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
}
