import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import { TIERS, type Tier } from '../access/tiers.ts';
import { lockAccount } from '../accounts/account-row.ts';
import { type Requester, writeAudit } from '../accounts/audit.ts';

/** Tickets and messages of an account in 24 h; each one is mailed. */
export const TICKETS_PER_DAY_MAX = 20;
/** Messages of a ticket after its question, of both sides. */
export const TICKET_MESSAGES_MAX = 100;
/** Tickets per page. */
export const TICKETS_PAGE_MAX = 100;

export const TICKET_STATES = ['open', 'answered', 'closed'] as const;
export type TicketState = (typeof TICKET_STATES)[number];

type Tx = Transaction<Tables>;
/** The account has written 20 times in 24 h. */
interface Limit {
  readonly kind: 'limit';
  readonly retryAfterS: number;
}

/**
 * Stores a ticket; `startSupportMail` mails it about a second later. Even concurrent requests store at
 * most 20 tickets and messages in 24 h; beyond that, `limit`. @throws any database error; then there
 * is no ticket
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
    const limit = await limitOf(tx, accountId);
    if (limit !== undefined) return limit;
    const row = { id, account_id: accountId, tier: tier ?? 'none', subject, message };
    await tx.insertInto('support_tickets').values(row).execute();
    const { supportPriority: priority, support: channel } = plan;
    return { kind: 'ok' as const, id, priority, channel };
  });
}

/**
 * Adds a message of the customer, which is mailed like a ticket; the ticket is open again.
 * @returns `unknown` for a ticket of another account, `full` beyond 100 messages, `limit` as above
 */
export async function writeToSupport(
  db: Database,
  to: { readonly accountId: string; readonly ticketId: string; readonly message: string },
): Promise<{ readonly kind: 'ok' | 'unknown' | 'full' } | Limit> {
  const { accountId, ticketId, message } = to;
  return inTurn(db, accountId, async (tx) => {
    await lockAccount(tx, accountId);
    const ticket = await tx
      .selectFrom('support_tickets')
      .select('id')
      .where('id', '=', ticketId)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    if (ticket === undefined) return { kind: 'unknown' };
    const limit = await limitOf(tx, accountId);
    if (limit !== undefined) return limit;
    return { kind: await addMessage(tx, { ticketId, author: 'customer', message }) };
  });
}

/** Closes a ticket of the account. Idempotent. @returns whether the account has it */
export async function closeOwnTicket(
  db: Database,
  of: { readonly accountId: string; readonly ticketId: string },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('support_tickets')
    .set({ state: 'closed' })
    .where('id', '=', of.ticketId)
    .where('account_id', '=', of.accountId)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * Lists tickets of an account, newest first.
 * @param page `limit` is 1 to 100; `before` is the id of the last ticket on the previous page
 */
export function listTickets(
  db: Database,
  accountId: string,
  page: { readonly limit: number; readonly before?: string | undefined },
) {
  const { before } = page;
  let query = db
    .selectFrom('support_tickets')
    .select(['id', 'subject', 'state', 'created_at'])
    .where('account_id', '=', accountId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(Math.min(page.limit, TICKETS_PAGE_MAX));
  if (before !== undefined) {
    query = query.where(
      sql<boolean>`(created_at, id) < (
        SELECT created_at, id FROM support_tickets
        WHERE id = ${before} AND account_id = ${accountId})`,
    );
  }
  return query.execute();
}

/**
 * Reads a ticket with all that was written, oldest first; the question is the first message.
 * @param accountId undefined: the operator reads a ticket of any account
 */
export async function readTicket(db: Database, accountId: string | undefined, id: string) {
  let query = db
    .selectFrom('support_tickets')
    .select(['id', 'account_id', 'tier', 'subject', 'state', 'message', 'created_at'])
    .where('id', '=', id);
  if (accountId !== undefined) query = query.where('account_id', '=', accountId);
  const ticket = await query.executeTakeFirst();
  if (ticket === undefined) return undefined;
  const later = await db
    .selectFrom('support_messages')
    .select(['author', 'message', 'created_at'])
    .where('ticket_id', '=', id)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
  const { message, ...of } = ticket;
  const question = { author: 'customer' as const, message, created_at: of.created_at };
  return { ...of, messages: [question, ...later] };
}

/** Tickets that wait for support: by tier, then the oldest first. @param limit at most 100 */
export async function listWaitingTickets(db: Database, limit: number) {
  const { rows } = await sql<{
    id: string;
    account_id: string;
    tier: string;
    subject: string;
    created_at: Date;
  }>`SELECT id, account_id, tier, subject, created_at FROM support_tickets WHERE state = 'open'
    ORDER BY CASE tier WHEN 'institutional' THEN 1 WHEN 'pro' THEN 2 ELSE 3 END, created_at, id
    LIMIT ${Math.min(limit, TICKETS_PAGE_MAX)}`.execute(db);
  return rows;
}

/**
 * Answers a ticket, in the name of support; the answer is mailed to the verified users of the account.
 * @returns `unknown` without such a ticket, `full` beyond 100 messages
 */
export async function answerTicket(
  db: Database,
  { ticketId, message, ...requester }: Requester & { readonly ticketId: string; message: string },
): Promise<'ok' | 'unknown' | 'full'> {
  return changeTicket(db, ticketId, async (tx, accountId) => {
    const added = await addMessage(tx, { ticketId, author: 'support', message });
    if (added === 'full') return added;
    await writeAudit(tx, { ...requester, accountId, action: 'ticket.answered', target: ticketId });
    return 'ok';
  });
}

/** Closes a ticket, in the name of support. */
export async function closeTicket(
  db: Database,
  { ticketId, ...requester }: Requester & { readonly ticketId: string },
): Promise<'ok' | 'unknown'> {
  return changeTicket(db, ticketId, async (tx, accountId) => {
    await setState(tx, ticketId, 'closed');
    await writeAudit(tx, { ...requester, accountId, action: 'ticket.closed', target: ticketId });
    return 'ok' as const;
  });
}

async function changeTicket<T>(
  db: Database,
  id: string,
  change: (tx: Tx, accountId: string) => Promise<T>,
): Promise<T | 'unknown'> {
  const ticket = await db
    .selectFrom('support_tickets')
    .select('account_id')
    .where('id', '=', id)
    .executeTakeFirst();
  if (ticket === undefined) return 'unknown';
  const { account_id: accountId } = ticket;
  return inTurn(db, accountId, async (tx) => {
    await lockAccount(tx, accountId);
    return change(tx, accountId);
  });
}

/** Adds a message under the lock of the account. */
async function addMessage(
  tx: Tx,
  of: {
    readonly ticketId: string;
    readonly author: 'customer' | 'support';
    readonly message: string;
  },
): Promise<'ok' | 'full'> {
  const { ticketId, author, message } = of;
  const { count } = await tx
    .selectFrom('support_messages')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('ticket_id', '=', ticketId)
    .executeTakeFirstOrThrow();
  if (Number(count) >= TICKET_MESSAGES_MAX) return 'full';
  const row = { id: newId('smg'), ticket_id: ticketId, author, message };
  await tx.insertInto('support_messages').values(row).execute();
  await setState(tx, ticketId, author === 'customer' ? 'open' : 'answered');
  return 'ok';
}

async function setState(tx: Tx, id: string, state: TicketState): Promise<void> {
  await tx.updateTable('support_tickets').set({ state }).where('id', '=', id).execute();
}

/** Whether the account has written 20 times in 24 h, under its lock. */
async function limitOf(tx: Tx, accountId: string): Promise<Limit | undefined> {
  const { rows } = await sql<{ count: string; retry_s: number | null }>`
    SELECT count(*) AS count,
      ceil(extract(epoch FROM min(created_at) + interval '1 day' - now()))::integer AS retry_s
    FROM (
      SELECT created_at FROM support_tickets WHERE account_id = ${accountId}
      UNION ALL
      SELECT m.created_at FROM support_messages m JOIN support_tickets t ON t.id = m.ticket_id
      WHERE t.account_id = ${accountId} AND m.author = 'customer'
    ) AS written WHERE created_at > now() - interval '1 day'`.execute(tx);
  const { count, retry_s: retryS } = rows[0]!;
  if (Number(count) < TICKETS_PER_DAY_MAX) return undefined;
  return { kind: 'limit', retryAfterS: Math.max(1, retryS ?? 1) };
}

/** Without a subscription, the lowest tier's support applies. */
export function planOf(tier: Tier | undefined) {
  return TIERS[tier ?? 'basic'];
}
