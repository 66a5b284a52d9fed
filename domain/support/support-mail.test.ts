import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import { type Mailer, openMailer } from '../../lib/mail/mailer.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { headerOf, openTestSmtp, type TestSmtp } from '../../testing/smtp.ts';
import { waitFor } from '../../testing/wait.ts';
import { newId } from '../access/id.ts';
import type { Tier } from '../access/tiers.ts';
import { mailSupportMessages, mailSupportTickets } from './support-mail.ts';
import { answerTicket, openSupportTicket, TICKETS_PER_DAY_MAX, writeToSupport } from './tickets.ts';

let namespace: DatabaseNamespace;
let db: Database;
let smtp: TestSmtp;
let mailer: Mailer;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  await sql`TRUNCATE support_tickets CASCADE`.execute(db);
  smtp = await openTestSmtp();
  mailer = openMailer(smtp.config);
});

afterEach(async () => {
  mailer.close();
  await smtp.close();
});

async function newAccount(tier: Tier | null = 'pro', isVerified = true) {
  const { id } = await createTestAccount(db, namespace, { tier });
  const user = newId('usr');
  const email = `${user}@example.com`;
  await db
    .insertInto('users')
    .values({
      id: user,
      account_id: id,
      email,
      password_hash: '-',
      email_verified_at: isVerified ? new Date() : null,
    })
    .execute();
  return { id, email, tier: tier ?? undefined };
}

type Account = Awaited<ReturnType<typeof newAccount>>;

type NewTicket = Parameters<typeof openSupportTicket>[1];

const open = ({ id, tier }: Account, more: Partial<NewTicket> = {}) =>
  openSupportTicket(db, { accountId: id, tier, subject: 'Help', message: 'Why?', ...more });
const deps = () => ({
  db,
  mailer,
  log: silentLog,
  support: smtp.config.support,
  publicUrl: 'https://pills.example',
});
const round = () => mailSupportTickets(deps());
/** Opens a ticket and mails it. */
async function send(account: Account, more: Partial<NewTicket> = {}) {
  const taken = await open(account, more);
  await round();
  return taken;
}
const stored = ({ id }: Account) =>
  db.selectFrom('support_tickets').selectAll().where('account_id', '=', id).execute();
const subjects = () => smtp.mails.map((mail) => headerOf(mail, 'subject')[0]!);

test('a ticket is stored and mailed to support, with the user as reply address', async () => {
  const account = await newAccount();
  const sent = await send(account, { subject: 'A socket', message: 'It ends.\n\nWhy?' });
  if (sent.kind !== 'ok') throw new Error(sent.kind);
  expect(sent).toMatchObject({ priority: 2, channel: 'priority' });
  expect(await stored(account)).toMatchObject([
    { id: sent.id, tier: 'pro', subject: 'A socket', message: 'It ends.\n\nWhy?' },
  ]);
  const [mail] = smtp.mails;
  expect(mail!.recipients).toEqual([smtp.config.support]);
  expect(headerOf(mail!, 'reply-to')).toEqual([account.email]);
  expect(subjects()).toEqual([`[P2] pro: A socket (${sent.id})`]);
  expect(mail!.text).toContain(`Test (${account.id}) writes:\n\nIt ends.\n\nWhy?\n`);
});

test('a ticket of an unverified address is marked, and a reply does not go to that address', async () => {
  const account = await newAccount(null, false);
  const sent = await send(account, { subject: 'I lost my key' });
  if (sent.kind !== 'ok') throw new Error(sent.kind);
  expect(subjects()).toEqual([`[P3][unverified] no subscription: I lost my key (${sent.id})`]);
  const [mail] = smtp.mails;
  expect(headerOf(mail!, 'reply-to')).toEqual([]);
  expect(mail!.text).toContain('has not shown that the address and the name are theirs');
});

test('a mailbox sorted by subject is sorted by tier', async () => {
  const priorities = [];
  for (const tier of ['basic', 'institutional', null, 'pro'] as const) {
    const sent = await send(await newAccount(tier), { subject: `from ${tier}` });
    priorities.push(sent.kind === 'ok' ? sent.priority : sent.kind);
  }
  expect(priorities).toEqual([3, 1, 3, 2]);
  const inOrder = subjects()
    .sort()
    .map((subject) => subject.slice(0, subject.indexOf(' (')));
  expect(inOrder).toEqual([
    '[P1] institutional: from institutional',
    '[P2] pro: from pro',
    '[P3] basic: from basic',
    '[P3] no subscription: from null',
  ]);
  // Mail programs show this header as the priority.
  const marks = smtp.mails.map((mail) => headerOf(mail, 'importance')[0] ?? 'Normal');
  expect(marks).toEqual(['Low', 'High', 'Low', 'Normal']);
});

test('a ticket keeps the tier of the time it was opened', async () => {
  const account = await newAccount(null);
  await send(account);
  await send({ ...account, tier: 'institutional' });
  expect((await stored(account)).map(({ tier }) => tier).sort()).toEqual(['institutional', 'none']);
});

test('a subject of several lines adds no header', async () => {
  const account = await newAccount();
  await send(account, { subject: 'Help\r\nBcc: eve@example.com\r\n\r\nhidden' });
  const [mail] = smtp.mails;
  expect(headerOf(mail!, 'bcc')).toEqual([]);
  expect(mail!.recipients).toEqual([smtp.config.support]);
  expect(subjects()[0]).toContain('Help Bcc: eve@example.com hidden');
});

describe('20 tickets a day', () => {
  test('are sent; another ticket is not sent until the next day', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    for (let ticket = 0; ticket < TICKETS_PER_DAY_MAX; ticket += 1) {
      expect(await send(account)).toMatchObject({ kind: 'ok' });
    }
    expect(await send(account)).toMatchObject({ kind: 'limit' });
    expect(smtp.mails).toHaveLength(TICKETS_PER_DAY_MAX);
    expect(await stored(account)).toHaveLength(TICKETS_PER_DAY_MAX);
    expect(await send(other)).toMatchObject({ kind: 'ok' });
    await sql`UPDATE support_tickets SET created_at = created_at - interval '23 hours 55 minutes'
      WHERE account_id = ${account.id}`.execute(db);
    const refused = await send(account);
    if (refused.kind !== 'limit') throw new Error(refused.kind);
    expect(refused.retryAfterS).toBeGreaterThan(0);
    expect(refused.retryAfterS).toBeLessThanOrEqual(5 * 60);
    await sql`UPDATE support_tickets SET created_at = created_at - interval '5 minutes'
      WHERE account_id = ${account.id}`.execute(db);
    expect(await send(account)).toMatchObject({ kind: 'ok' });
  });

  test('are exact: of 10 concurrent tickets with 5 left, 5 are accepted', async () => {
    const account = await newAccount();
    for (let ticket = 5; ticket < TICKETS_PER_DAY_MAX; ticket += 1) await open(account);
    const taken = await Promise.all(Array.from({ length: 10 }, () => open(account)));
    expect(taken.filter(({ kind }) => kind === 'ok')).toHaveLength(5);
    expect(await stored(account)).toHaveLength(TICKETS_PER_DAY_MAX);
  });
});

describe('a ticket whose mail is not accepted', () => {
  test('is stored, and mailed once the mailbox accepts it', async () => {
    const account = await newAccount();
    smtp.refusals.set(smtp.config.support, '452 Mailbox is full');
    expect(await send(account)).toMatchObject({ kind: 'ok' });
    expect(await stored(account)).toMatchObject([{ mailed_at: null, attempts: 1 }]);
    smtp.refusals.clear();
    expect((await round()).mailed).toBe(0);
    await sql`UPDATE support_tickets SET next_at = now()`.execute(db);
    expect((await round()).mailed).toBe(1);
    expect(await stored(account)).toMatchObject([{ mailed_at: expect.any(Date), attempts: 2 }]);
    expect((await round()).mailed).toBe(0);
    expect(smtp.mails).toHaveLength(1);
  });

  test('holds no database connection while its mail is sent', async () => {
    const account = await newAccount();
    await open(account);
    let answer: (() => void) | undefined;
    const hanging = { send: () => new Promise<void>((resolve) => (answer = resolve)) };
    const mailed = mailSupportTickets({ ...deps(), mailer: hanging });
    await waitFor('the mail to leave', () => answer !== undefined);
    const { rows } = await sql<{ busy: string }>`SELECT count(*) AS busy FROM pg_stat_activity
      WHERE application_name = 'pillole-test' AND state LIKE 'idle in transaction%'
        AND query LIKE '%support_tickets%'`.execute(db);
    expect(rows).toEqual([{ busy: '0' }]);
    // Another process skips the claimed ticket.
    expect((await round()).mailed).toBe(0);
    answer!();
    expect((await mailed).mailed).toBe(1);
  });
});

describe('messages after the question', () => {
  const OPERATOR = { actor: 'operator:test' };

  test('go to support with the priority of the ticket, and answers to the verified users', async () => {
    const account = await newAccount();
    const { id: ticketId } = (await send(account, { subject: 'A socket' })) as { id: string };
    await answerTicket(db, { ...OPERATOR, ticketId, message: 'Which one?' });
    await writeToSupport(db, { accountId: account.id, ticketId, message: 'The second.' });
    expect((await mailSupportMessages(deps())).mailed).toBe(2);
    const [, answer, reply] = smtp.mails;
    expect(answer!.recipients).toEqual([account.email]);
    expect(headerOf(answer!, 'subject')).toEqual([`Re: A socket (${ticketId})`]);
    expect(answer!.text).toContain('Which one?');
    expect(answer!.text).toContain(`https://pills.example/app/support/${ticketId}`);
    expect(reply!.recipients).toEqual([smtp.config.support]);
    expect(headerOf(reply!, 'subject')).toEqual([`[P2] pro: A socket (${ticketId})`]);
    expect(reply!.text).toContain('The second.');
    expect((await mailSupportMessages(deps())).mailed).toBe(0);
  });

  test('an answer whose mail one user refuses is not sent twice to the other', async () => {
    const account = await newAccount();
    const second = `${newId('usr')}@example.com`;
    await db
      .insertInto('users')
      .values({
        id: newId('usr'),
        account_id: account.id,
        email: second,
        password_hash: '-',
        email_verified_at: new Date(),
      })
      .execute();
    const { id: ticketId } = (await send(account)) as { id: string };
    smtp.refusals.set(second, '452 Mailbox is full');
    await answerTicket(db, { ...OPERATOR, ticketId, message: 'Soon.' });
    expect((await mailSupportMessages(deps())).mailed).toBe(0);
    smtp.refusals.clear();
    await sql`UPDATE support_messages SET next_at = now()`.execute(db);
    expect((await mailSupportMessages(deps())).mailed).toBe(1);
    const answers = smtp.mails.filter(({ text }) => text.includes('Soon.'));
    expect(answers.flatMap(({ recipients }) => recipients).sort()).toEqual(
      [account.email, second].sort(),
    );
  });

  test('an unverified address gets no answer by mail', async () => {
    const { id: ticketId } = (await send(await newAccount(null, false))) as { id: string };
    await answerTicket(db, { ...OPERATOR, ticketId, message: 'Soon.' });
    expect((await mailSupportMessages(deps())).mailed).toBe(1);
    expect(smtp.mails).toHaveLength(1);
  });
});
