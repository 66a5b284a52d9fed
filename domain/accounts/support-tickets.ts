import { sql } from 'kysely';
import type { Mail } from '../../lib/mail/mailer.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { newId } from '../access/id.ts';
import { TIER_NAMES, TIERS, type Tier } from '../access/tiers.ts';
import { lockAccount } from './account-row.ts';
import type { MailedRow } from './mail-claims.ts';
import { mailPendingRows, type PendingMailDeps } from './pending-mails.ts';

/** Tickets per account and day; each one is mailed. */
export const TICKETS_PER_DAY_MAX = 20;

const MAIL_PRIORITY = { 1: 'high', 2: 'normal', 3: 'low' } as const;
const INTERVAL_MS = 1_000;

/**
 * Stores a ticket; `startSupportMail` mails it about a second later. Even concurrent requests store at
 * most 20 tickets in 24 h; beyond that, `limit`. @throws any database error; then there is no ticket
 */
export async function openSupportTicket(
  db: Database,
  ticket: {
    readonly accountId: string;
    readonly tier: Tier | undefined;
    readonly subject: string;
    readonly message: string;
  },
) {
  const { accountId, tier, subject, message } = ticket;
  const plan = planOf(tier);
  const id = newId('tkt');
  return inTurn(db, accountId, async (tx) => {
    await lockAccount(tx, accountId);
    const { rows } = await sql<{ count: string; retry_s: number | null }>`
      SELECT count(*) AS count,
        ceil(extract(epoch FROM min(created_at) + interval '1 day' - now()))::integer AS retry_s
      FROM support_tickets
      WHERE account_id = ${accountId} AND created_at > now() - interval '1 day'`.execute(tx);
    const { count, retry_s: retryS } = rows[0]!;
    if (Number(count) >= TICKETS_PER_DAY_MAX) {
      return { kind: 'limit' as const, retryAfterS: Math.max(1, retryS ?? 1) };
    }
    const row = { id, account_id: accountId, tier: tier ?? 'none', subject, message };
    await tx.insertInto('support_tickets').values(row).execute();
    const { supportPriority: priority, support: channel } = plan;
    return { kind: 'ok' as const, id, priority, channel };
  });
}

/** `support`: address of the support mailbox. */
export type SupportMailDeps = PendingMailDeps & { readonly support: string };

/** Mails tickets to support until each one is accepted or parked. */
export function startSupportMail(deps: SupportMailDeps) {
  const run = () => mailSupportTickets(deps);
  return runEvery({ name: 'support mails', everyMs: INTERVAL_MS, log: deps.log, run });
}

/** Runs one round. @throws any database error */
export function mailSupportTickets(deps: SupportMailDeps) {
  const { db, support } = deps;
  return mailPendingRows(deps, 'support_tickets', async (ticket) => {
    const asker = await db
      .selectFrom('accounts as a')
      .leftJoin('users as u', 'u.account_id', 'a.id')
      .select(['a.name', 'u.email', 'u.email_verified_at'])
      .where('a.id', '=', ticket.account_id)
      .orderBy('u.created_at')
      .executeTakeFirstOrThrow();
    return [{ make: () => ticketMail(support, ticket, asker) }];
  });
}

/** The subject begins with the priority, so that a mailbox sorted by subject is sorted by tier. */
function ticketMail(
  to: string,
  { id, account_id: accountId, tier: bought, subject, message }: MailedRow<'support_tickets'>,
  asker: {
    readonly name: string;
    readonly email: string | null;
    readonly email_verified_at: Date | null;
  },
): Mail {
  const tier = TIER_NAMES.find((name) => name === bought);
  const priority = planOf(tier).supportPriority;
  const isVerified = asker.email_verified_at !== null;
  const mark = isVerified ? '' : '[unverified]';
  return {
    to,
    subject: `[P${priority}]${mark} ${tier ?? 'no subscription'}: ${subject} (${id})`,
    text: `${asker.name} (${accountId}) writes:\n\n${message}\n${isVerified ? '' : UNVERIFIED}`,
    priority: MAIL_PRIORITY[priority],
    // A reply would go to whoever owns the address, who may not be the one who wrote.
    ...(isVerified && asker.email !== null ? { replyTo: asker.email } : {}),
  };
}

const UNVERIFIED = `
The writer has not shown that the address and the name are theirs: anyone can sign up with them. Do
not change the account, and do not send data of it, on the strength of this message.
`;

/** Without a subscription, the lowest tier's support applies. */
function planOf(tier: Tier | undefined) {
  return TIERS[tier ?? 'basic'];
}
