import { sql } from 'kysely';
import { newId } from '../access/id.ts';
import { TIERS, type Tier } from '../access/tiers.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';

/** Tickets of one account a day; a mail each. */
export const TICKETS_PER_DAY_MAX = 20;

export interface NewTicket {
  readonly accountId: string;
  readonly accountName: string;
  readonly tier: Tier | undefined;
  readonly subject: string;
  readonly message: string;
}

export type TicketSent =
  | {
      readonly kind: 'ok';
      readonly id: string;
      readonly priority: 1 | 2 | 3;
      readonly channel: string;
    }
  | { readonly kind: 'limit' };

const MAIL_PRIORITY = { 1: 'high', 2: 'normal', 3: 'low' } as const;

/**
 * Keeps a ticket and sends it. The priority stands first in the subject, so that a mailbox sorted
 * by it is sorted by tier. @throws when the mail is not taken: then there is no ticket either
 */
export async function sendTicket(
  {
    db,
    mailer,
    support,
  }: { readonly db: Database; readonly mailer: Mailer; readonly support: string },
  ticket: NewTicket,
): Promise<TicketSent> {
  const plan = TIERS[ticket.tier ?? 'basic'];
  const priority = plan.supportPriority;
  const id = newId('tkt');
  return db.transaction().execute(async (tx) => {
    const { count } = await tx
      .selectFrom('support_tickets')
      .select((eb) => eb.fn.countAll<string>().as('count'))
      .where('account_id', '=', ticket.accountId)
      .where('created_at', '>', sql<Date>`now() - interval '1 day'`)
      .executeTakeFirstOrThrow();
    if (Number(count) >= TICKETS_PER_DAY_MAX) return { kind: 'limit' };
    await tx
      .insertInto('support_tickets')
      .values({
        id,
        account_id: ticket.accountId,
        tier: ticket.tier ?? 'none',
        subject: ticket.subject,
        message: ticket.message,
      })
      .execute();
    const users = await tx
      .selectFrom('users')
      .select('email')
      .where('account_id', '=', ticket.accountId)
      .limit(1)
      .execute();
    const replyTo = users[0]?.email;
    await mailer.send({
      to: support,
      subject: `[P${priority}] ${ticket.tier ?? 'no subscription'}: ${ticket.subject} (${id})`,
      text: `${ticket.accountName} (${ticket.accountId}) writes:\n\n${ticket.message}\n`,
      priority: MAIL_PRIORITY[priority],
      ...(replyTo === undefined ? {} : { replyTo }),
    });
    return { kind: 'ok', id, priority, channel: plan.support };
  });
}
