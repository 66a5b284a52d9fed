import type { Transaction } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { hashToken, newToken } from './secret-token.ts';

/** How long a mailed token is good. */
const TOKEN_LIFE_S = { verify_email: 86_400, reset_password: 1_800 } as const;

/** What a mailed token proves that one may do. */
export type TokenPurpose = keyof typeof TOKEN_LIFE_S;

/** Makes a single-use token for a mail; the table holds its hash alone. */
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

/** Uses up a mailed token, a late one too. @returns whose it was; undefined = it proves nothing */
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

/** The e-mail address of a token's user, for the password rules. */
export async function emailOfResetToken(db: Database, token: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('mail_tokens as t')
    .innerJoin('users as u', 'u.id', 't.user_id')
    .select('u.email')
    .where('t.hash', '=', hashToken(token))
    .where('t.purpose', '=', 'reset_password')
    .executeTakeFirst();
  return row?.email;
}
