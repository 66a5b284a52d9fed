import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';

/** A network stays known for this long after a sign-in from it. */
export const KNOWN_DAYS = 90;
/** Networks remembered of a user; of more, those not used for longest are forgotten. */
export const KNOWN_NETWORKS_MAX = 100;

/** Whether the user with this e-mail address has signed in from a network lately. */
export async function isKnownNetwork(
  db: Database,
  email: string,
  network: string,
): Promise<boolean> {
  const row = await db
    .selectFrom('sign_in_networks as n')
    .innerJoin('users as u', 'u.id', 'n.user_id')
    .select('n.network')
    .where('u.email', '=', email)
    .where('n.network', '=', network)
    .where('n.last_at', '>', sql<Date>`now() - make_interval(days => ${KNOWN_DAYS})`)
    .executeTakeFirst();
  return row !== undefined;
}

/** Remembers a sign-in of a locked user. @returns whether its network was not known */
export async function rememberNetwork(
  tx: Transaction<Tables>,
  userId: string,
  network: string,
): Promise<boolean> {
  const before = await sql`
    SELECT FROM sign_in_networks WHERE user_id = ${userId} AND network = ${network}
      AND last_at > now() - make_interval(days => ${KNOWN_DAYS})`.execute(tx);
  await sql`
    INSERT INTO sign_in_networks (user_id, network, last_at)
    VALUES (${userId}, ${network}, clock_timestamp())
    ON CONFLICT (user_id, network) DO UPDATE SET last_at = excluded.last_at`.execute(tx);
  if (before.rows.length > 0) return false;
  await sql`DELETE FROM sign_in_networks WHERE user_id = ${userId} AND network IN (
    SELECT network FROM sign_in_networks WHERE user_id = ${userId}
    ORDER BY last_at DESC OFFSET ${KNOWN_NETWORKS_MAX})`.execute(tx);
  return true;
}
