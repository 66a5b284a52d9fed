import { sql } from 'kysely';
import type { Mail } from '../../lib/mail/mailer.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { PERMISSIONS } from '../access/roles.ts';
import { TIER_NAMES } from '../access/tiers.ts';
import type { MailedRow } from '../accounts/mail-claims.ts';
import { mailPendingRows, type PendingMailDeps } from '../accounts/pending-mails.ts';
import { planOf } from './tickets.ts';

const MAIL_PRIORITY = { 1: 'high', 2: 'normal', 3: 'low' } as const;
const INTERVAL_MS = 1_000;

export type SupportMailDeps = PendingMailDeps & {
  /** Address of the support mailbox. */
  readonly support: string;
  readonly publicUrl: string;
};

/** Mails tickets and messages until each one is accepted or parked. */
export function startSupportMail(deps: SupportMailDeps) {
  const run = async () => {
    await mailSupportTickets(deps);
    await mailSupportMessages(deps);
  };
  return runEvery({ name: 'support mails', everyMs: INTERVAL_MS, log: deps.log, run });
}

/** Runs one round of tickets. @throws any database error */
export function mailSupportTickets(deps: SupportMailDeps) {
  const { db, support } = deps;
  return mailPendingRows(deps, 'support_tickets', async (ticket) => {
    const asker = await askerOf(db, ticket.account_id);
    return [{ make: () => questionMail(support, ticket, asker) }];
  });
}

/**
 * Runs one round of messages: those of customers go to support, and answers to the verified users.
 * @throws any database error
 */
export function mailSupportMessages(deps: SupportMailDeps) {
  const { db, support, publicUrl } = deps;
  return mailPendingRows(deps, 'support_messages', async (row) => {
    const { author, message } = row;
    const ticket = await db
      .selectFrom('support_tickets')
      .selectAll()
      .where('id', '=', row.ticket_id)
      .executeTakeFirstOrThrow();
    if (author === 'customer') {
      const asker = await askerOf(db, ticket.account_id);
      return [{ make: () => questionMail(support, { ...ticket, message }, asker) }];
    }
    const users = await db
      .selectFrom('users')
      .select(['id', 'email'])
      .where('account_id', '=', ticket.account_id)
      .where('email_verified_at', 'is not', null)
      .where('role', 'in', PERMISSIONS.support)
      .where('id', '<>', sql<string>`ALL (${[...row.told]}::text[])`)
      .execute();
    return users.map(({ id, email }) => ({
      make: () => answerMail({ to: email, publicUrl }, ticket, message),
      async markSent() {
        await db
          .updateTable('support_messages')
          .set({ told: sql<string[]>`array_append(told, ${id})` })
          .where('id', '=', row.id)
          .execute();
      },
    }));
  });
}

interface Asker {
  readonly name: string;
  readonly email: string | null;
  readonly email_verified_at: Date | null;
}

function askerOf(db: Database, accountId: string): Promise<Asker> {
  return db
    .selectFrom('accounts as a')
    .leftJoin('users as u', 'u.account_id', 'a.id')
    .select(['a.name', 'u.email', 'u.email_verified_at'])
    .where('a.id', '=', accountId)
    .orderBy('u.created_at')
    .executeTakeFirstOrThrow();
}

type Ticket = Pick<
  MailedRow<'support_tickets'>,
  'id' | 'account_id' | 'tier' | 'subject' | 'message'
>;

/** The subject begins with the priority, so that a mailbox sorted by subject is sorted by tier. */
function questionMail(
  to: string,
  { id, account_id: accountId, tier: bought, subject, message }: Ticket,
  asker: Asker,
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

function answerMail(
  { to, publicUrl }: { readonly to: string; readonly publicUrl: string },
  { id, subject }: Pick<Ticket, 'id' | 'subject'>,
  message: string,
): Mail {
  return {
    to,
    subject: `Re: ${subject} (${id})`,
    text: `${message}\n\nTo write again: ${publicUrl}/app/support/${id}\n`,
  };
}

const UNVERIFIED = `
The writer has not shown that the address and the name are theirs: anyone can sign up with them. Do
not change the account, and do not send data of it, on the strength of this message.
`;
