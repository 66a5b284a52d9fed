import { sql } from 'kysely';
import { newId } from '../access/id.ts';
import { TIER_NAMES, TIERS, type Tier } from '../access/tiers.ts';
import type { Mail } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
import { type Repetition, repeat } from '../repeat.ts';
import { lockAccount } from './account-row.ts';
import type { Claimed } from './mail-claims.ts';
import { type Mailed, mailRows, type RoundParts } from './mail-rounds.ts';

/** Tickets of one account a day; a mail each. */
export const TICKETS_PER_DAY_MAX = 20;

export interface NewTicket {
  readonly accountId: string;
  readonly tier: Tier | undefined;
  readonly subject: string;
  readonly message: string;
}

export type TicketTaken =
  | {
      readonly kind: 'ok';
      readonly id: string;
      readonly priority: 1 | 2 | 3;
      readonly channel: string;
    }
  /** 20 were taken within 24 h. */
  | { readonly kind: 'limit'; readonly retryAfterS: number };

const MAIL_PRIORITY = { 1: 'high', 2: 'normal', 3: 'low' } as const;
const INTERVAL_MS = 1_000;

/**
 * Keeps a ticket; its mail leaves about a second later, by `startTicketMail`. Of tickets at the same
 * moment no more than 20 are taken. @throws what the database says; then there is no ticket
 */
export async function takeTicket(db: Database, ticket: NewTicket): Promise<TicketTaken> {
  const { accountId, tier, subject, message } = ticket;
  const plan = planOf(tier);
  const id = newId('tkt');
  return db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const { rows } = await sql<{ count: string; retry_s: number | null }>`
      SELECT count(*) AS count,
        ceil(extract(epoch FROM min(created_at) + interval '1 day' - now()))::integer AS retry_s
      FROM support_tickets
      WHERE account_id = ${accountId} AND created_at > now() - interval '1 day'`.execute(tx);
    const { count, retry_s: retryS } = rows[0]!;
    if (Number(count) >= TICKETS_PER_DAY_MAX) {
      return { kind: 'limit', retryAfterS: Math.max(1, retryS ?? 1) };
    }
    const row = { id, account_id: accountId, tier: tier ?? 'none', subject, message };
    await tx.insertInto('support_tickets').values(row).execute();
    return { kind: 'ok', id, priority: plan.supportPriority, channel: plan.support };
  });
}

/** What tickets are mailed with. */
export interface TicketMailParts extends RoundParts {
  /** Where they go. */
  readonly support: string;
}

interface TicketRow extends Claimed {
  readonly account_id: string;
  readonly tier: string;
  readonly subject: string;
  readonly message: string;
}

/** Mails tickets to support, each until its mail was taken or it is parked. */
export function startTicketMail(parts: TicketMailParts): Repetition {
  return repeat({
    ...{ name: 'mails of tickets', everyMs: INTERVAL_MS, log: parts.log },
    run: () => mailTickets(parts),
  });
}

/** One round of it. @throws what the database says */
export function mailTickets(parts: TicketMailParts): Promise<Mailed> {
  const { db, support } = parts;
  return mailRows<TicketRow>(parts, 'support_tickets', async (ticket) => {
    const asker = await db
      .selectFrom('accounts as a')
      .leftJoin('users as u', 'u.account_id', 'a.id')
      .select(['a.name', 'u.email'])
      .where('a.id', '=', ticket.account_id)
      .orderBy('u.created_at')
      .executeTakeFirstOrThrow();
    return [{ make: () => ticketMail(support, ticket, asker) }];
  });
}

/** The priority stands first in the subject: a mailbox sorted by it is sorted by tier. */
function ticketMail(
  to: string,
  { id, account_id: accountId, tier: bought, subject, message }: TicketRow,
  asker: { readonly name: string; readonly email: string | null },
): Mail {
  const tier = TIER_NAMES.find((name) => name === bought);
  const priority = planOf(tier).supportPriority;
  return {
    to,
    subject: `[P${priority}] ${tier ?? 'no subscription'}: ${subject} (${id})`,
    text: `${asker.name} (${accountId}) writes:\n\n${message}\n`,
    priority: MAIL_PRIORITY[priority],
    ...(asker.email === null ? {} : { replyTo: asker.email }),
  };
}

/** Without a subscription support is as in the smallest one. */
function planOf(tier: Tier | undefined) {
  return TIERS[tier ?? 'basic'];
}
