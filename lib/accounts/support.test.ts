import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../access/id.ts';
import type { Tier } from '../access/tiers.ts';
import { type Mailer, openMailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../testing/accounts.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { headerOf, openTestSmtp, type TestSmtp } from '../testing/smtp.ts';
import { type NewTicket, sendTicket, TICKETS_PER_DAY_MAX } from './support.ts';

let namespace: Namespace;
let db: Database;
let smtp: TestSmtp;
let mailer: Mailer;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  smtp = await openTestSmtp();
  mailer = openMailer(smtp.config);
});

afterEach(async () => {
  mailer.close();
  await smtp.close();
});

async function newAccount(tier: Tier | null = 'pro') {
  const { id } = await createTestAccount(db, namespace, { tier });
  const user = newId('usr');
  const email = `${user}@example.com`;
  await db
    .insertInto('users')
    .values({ id: user, account_id: id, email, password_hash: '-' })
    .execute();
  return { id, email, tier: tier ?? undefined };
}

type Account = Awaited<ReturnType<typeof newAccount>>;

const send = ({ id, tier }: Account, more: Partial<NewTicket> = {}) =>
  sendTicket(
    { db, mailer, support: smtp.config.support },
    { accountId: id, accountName: 'Desk 4', tier, subject: 'Help', message: 'Why?', ...more },
  );
const kept = ({ id }: Account) =>
  db.selectFrom('support_tickets').selectAll().where('account_id', '=', id).execute();
const subjects = () => smtp.mails.map((mail) => headerOf(mail, 'subject')[0]!);

test('a ticket is kept, and is a mail to support that is answered to its user', async () => {
  const account = await newAccount();
  const sent = await send(account, { subject: 'A socket', message: 'It ends.\n\nWhy?' });
  if (sent.kind !== 'ok') throw new Error(sent.kind);
  expect(sent).toMatchObject({ priority: 2, channel: 'priority' });
  expect(await kept(account)).toMatchObject([
    { id: sent.id, tier: 'pro', subject: 'A socket', message: 'It ends.\n\nWhy?' },
  ]);
  const [mail] = smtp.mails;
  expect(mail!.recipients).toEqual([smtp.config.support]);
  expect(headerOf(mail!, 'reply-to')).toEqual([account.email]);
  expect(subjects()).toEqual([`[P2] pro: A socket (${sent.id})`]);
  expect(mail!.text).toContain(`Desk 4 (${account.id}) writes:\n\nIt ends.\n\nWhy?\n`);
});

test('a mailbox that is sorted by subject is sorted by tier', async () => {
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
  // Mail programs that mark priorities mark these.
  const marks = smtp.mails.map((mail) => headerOf(mail, 'importance')[0] ?? 'Normal');
  expect(marks).toEqual(['Low', 'High', 'Low', 'Normal']);
});

test('the tier that a ticket was asked with stays', async () => {
  const account = await newAccount(null);
  await send(account);
  await send({ ...account, tier: 'institutional' });
  expect((await kept(account)).map(({ tier }) => tier).sort()).toEqual(['institutional', 'none']);
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
  test('are sent, one more is not, and tomorrow it is', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    for (let ticket = 0; ticket < TICKETS_PER_DAY_MAX; ticket += 1) {
      expect(await send(account)).toMatchObject({ kind: 'ok' });
    }
    expect(await send(account)).toEqual({ kind: 'limit' });
    expect(smtp.mails).toHaveLength(TICKETS_PER_DAY_MAX);
    expect(await kept(account)).toHaveLength(TICKETS_PER_DAY_MAX);
    expect(await send(other)).toMatchObject({ kind: 'ok' });
    await sql`UPDATE support_tickets SET created_at = created_at - interval '23 hours 55 minutes'
      WHERE account_id = ${account.id}`.execute(db);
    expect(await send(account)).toEqual({ kind: 'limit' });
    await sql`UPDATE support_tickets SET created_at = created_at - interval '5 minutes'
      WHERE account_id = ${account.id}`.execute(db);
    expect(await send(account)).toMatchObject({ kind: 'ok' });
  });
});

test('a mail that is not taken leaves no ticket', async () => {
  const account = await newAccount();
  smtp.refusals.set(smtp.config.support, '452 Mailbox is full');
  await expect(send(account)).rejects.toThrow('Mailbox is full');
  expect(await kept(account)).toEqual([]);
  smtp.refusals.clear();
  expect(await send(account)).toMatchObject({ kind: 'ok' });
  expect(await kept(account)).toHaveLength(1);
});
