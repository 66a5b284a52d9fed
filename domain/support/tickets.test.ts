import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import type { Tier } from '../access/tiers.ts';
import { readAudit } from '../accounts/audit.ts';
import {
  answerTicket,
  closeOwnTicket,
  closeTicket,
  listTickets,
  listWaitingTickets,
  openSupportTicket,
  readTicket,
  TICKET_MESSAGES_MAX,
  TICKETS_PER_DAY_MAX,
  writeToSupport,
} from './tickets.ts';

const OPERATOR = { actor: 'operator:test' };
let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

async function newTicket(accountId: string, tier: Tier = 'pro', subject = 'Help') {
  const opened = await openSupportTicket(db, { accountId, tier, subject, message: 'Why?' });
  if (opened.kind !== 'ok') throw new Error(opened.kind);
  return opened.id;
}
const newAccount = async (tier: Tier = 'pro') =>
  (await createTestAccount(db, namespace, { tier })).id;
const stateOf = async (id: string) => (await readTicket(db, undefined, id))?.state;

test('a ticket is open, answered, open again when the customer writes, and closed', async () => {
  const accountId = await newAccount();
  const ticketId = await newTicket(accountId);
  expect(await stateOf(ticketId)).toBe('open');
  expect(await answerTicket(db, { ...OPERATOR, ticketId, message: 'Because.' })).toBe('ok');
  expect(await stateOf(ticketId)).toBe('answered');
  expect(await writeToSupport(db, { accountId, ticketId, message: 'And now?' })).toEqual({
    kind: 'ok',
  });
  expect(await stateOf(ticketId)).toBe('open');
  expect(await closeTicket(db, { ...OPERATOR, ticketId })).toBe('ok');
  expect(await stateOf(ticketId)).toBe('closed');
  await writeToSupport(db, { accountId, ticketId, message: 'Again.' });
  expect(await stateOf(ticketId)).toBe('open');
  expect(await closeOwnTicket(db, { accountId, ticketId })).toBe(true);
  const ticket = await readTicket(db, accountId, ticketId);
  expect(ticket).toMatchObject({ id: ticketId, subject: 'Help', state: 'closed' });
  expect(ticket!.messages.map(({ author, message }) => [author, message])).toEqual([
    ['customer', 'Why?'],
    ['support', 'Because.'],
    ['customer', 'And now?'],
    ['customer', 'Again.'],
  ]);
  const audit = await readAudit(db, accountId, { limit: 2 });
  expect(audit.map(({ action, actor, target }) => [action, actor, target])).toEqual([
    ['ticket.closed', 'operator:test', ticketId],
    ['ticket.answered', 'operator:test', ticketId],
  ]);
});

test('a ticket of another account can be neither read, continued nor closed', async () => {
  const [owner, other] = [await newAccount(), await newAccount()];
  const ticketId = await newTicket(owner);
  expect(await readTicket(db, other, ticketId)).toBeUndefined();
  expect(await writeToSupport(db, { accountId: other, ticketId, message: 'Hm' })).toEqual({
    kind: 'unknown',
  });
  expect(await closeOwnTicket(db, { accountId: other, ticketId })).toBe(false);
  expect(await listTickets(db, other, { limit: 10 })).toEqual([]);
  expect(await listTickets(db, other, { limit: 10, before: ticketId })).toEqual([]);
  expect(await stateOf(ticketId)).toBe('open');
});

test('an unknown ticket is neither answered nor closed', async () => {
  const ticketId = 'tkt_000000000000';
  expect(await answerTicket(db, { ...OPERATOR, ticketId, message: 'Hm' })).toBe('unknown');
  expect(await closeTicket(db, { ...OPERATOR, ticketId })).toBe('unknown');
});

test('tickets are listed newest first, page by page, also those of one moment', async () => {
  const accountId = await newAccount();
  const ids = [];
  for (let count = 0; count < 7; count += 1) ids.push(await newTicket(accountId));
  await sql`UPDATE support_tickets SET created_at = '2026-11-20' WHERE id = ANY (${ids.slice(0, 4)})`.execute(
    db,
  );
  const listed: string[] = [];
  for (let before: string | undefined; ; before = listed.at(-1)) {
    const page = await listTickets(db, accountId, { limit: 3, before });
    listed.push(...page.map(({ id }) => id));
    if (page.length < 3) break;
  }
  expect(listed.slice(0, 3)).toEqual(ids.slice(4).reverse());
  expect(listed.slice(3)).toEqual(ids.slice(0, 4).sort().reverse());
});

test('the operator sees waiting tickets by tier, then the oldest first', async () => {
  const account = await newAccount();
  await sql`UPDATE support_tickets SET state = 'closed'`.execute(db);
  const [basic, institutional, first, second] = [
    await newTicket(account, 'basic'),
    await newTicket(account, 'institutional'),
    await newTicket(account, 'pro'),
    await newTicket(account, 'pro'),
  ];
  await closeTicket(db, { ...OPERATOR, ticketId: await newTicket(account, 'institutional') });
  const waiting = await listWaitingTickets(db, 10);
  expect(waiting.map(({ id }) => id)).toEqual([institutional, first, second, basic]);
});

test('messages count among the 20 of a day, and answers do not', async () => {
  const accountId = await newAccount();
  const ticketId = await newTicket(accountId);
  const write = () => writeToSupport(db, { accountId, ticketId, message: 'And?' });
  for (let count = 1; count < TICKETS_PER_DAY_MAX; count += 1) {
    await answerTicket(db, { ...OPERATOR, ticketId, message: 'Soon.' });
    expect(await write()).toEqual({ kind: 'ok' });
  }
  expect(await write()).toEqual({ kind: 'limit', retryAfterS: expect.any(Number) });
  expect(await answerTicket(db, { ...OPERATOR, ticketId, message: 'Soon.' })).toBe('ok');
});

test('a ticket has at most 100 messages, also of concurrent answers', async () => {
  const ticketId = await newTicket(await newAccount());
  await sql`INSERT INTO support_messages (id, ticket_id, author, message)
    SELECT 'smg_' || n, ${ticketId}, 'support', 'x'
    FROM generate_series(1, ${TICKET_MESSAGES_MAX - 3}::int) AS n`.execute(db);
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => answerTicket(db, { ...OPERATOR, ticketId, message: 'y' })),
  );
  expect(answers.filter((answer) => answer === 'ok')).toHaveLength(3);
  expect(answers.filter((answer) => answer === 'full')).toHaveLength(3);
  expect((await readTicket(db, undefined, ticketId))!.messages).toHaveLength(
    TICKET_MESSAGES_MAX + 1,
  );
});
