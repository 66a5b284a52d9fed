import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '../access/id.ts';
import { silentLog } from '../log.ts';
import { type Mailer, openMailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../testing/accounts.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { openTestSmtp, type TestSmtp } from '../testing/smtp.ts';
import { waitFor } from '../testing/wait.ts';
import { mailEvents, startEventMail } from './event-mail.ts';
import { claimMail, REFUSED_ATTEMPTS_MAX } from './mail-claims.ts';

const publicUrl = 'http://127.0.0.1:1';

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
  await sql`TRUNCATE accounts CASCADE`.execute(db);
  smtp = await openTestSmtp();
  mailer = openMailer(smtp.config);
});

afterEach(async () => {
  mailer.close();
  await smtp.close();
});

/** An account with a user for each address. */
async function newAccount(emails: readonly string[], { verified = true } = {}): Promise<string> {
  const { id } = await createTestAccount(db, namespace, { tier: 'pro' });
  for (const email of emails) {
    const user = { id: newId('usr'), account_id: id, email, password_hash: '-' };
    const at = verified ? new Date() : null;
    await db
      .insertInto('users')
      .values({ ...user, email_verified_at: at })
      .execute();
  }
  return id;
}

/** Raises an event. @returns its id */
async function raise(accountId: string, percent = 80): Promise<string> {
  const data = JSON.stringify({ percent });
  const { id } = await db
    .insertInto('account_events')
    .values({ account_id: accountId, type: 'quota.warning', dedupe: newId('evt'), data })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

const round = (send: Mailer['send'] = mailer.send) =>
  mailEvents({ db, mailer: { send }, publicUrl, log: silentLog });
/** Lets the waits of all events be over. */
const wait = () => sql`UPDATE account_events SET next_at = now()`.execute(db);
const read = (id: string) =>
  db.selectFrom('account_events').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const recipients = () => smtp.mails.map((mail) => mail.recipients.join());
const waiting = async () => {
  const rows = await db
    .selectFrom('account_events')
    .select('id')
    .where('mailed_at', 'is', null)
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
};

test('an event is mailed once, to the verified users of its account alone', async () => {
  const id = await newAccount(['a@example.com', 'b@example.com']);
  await newAccount(['other@example.com']);
  const unverified = await newAccount(['new@example.com'], { verified: false });
  await raise(id, 95);
  await raise(unverified);
  expect(await round()).toEqual({ mailed: 2, refused: [], parked: [], failure: undefined });
  expect(recipients().sort()).toEqual(['a@example.com', 'b@example.com']);
  expect(smtp.mails[0]!.text).toContain('percent: 95');
  expect(await round()).toMatchObject({ mailed: 0 });
  expect(smtp.mails).toHaveLength(2);
});

test('processes at once mail each event once, oldest first', async () => {
  const id = await newAccount(['a@example.com']);
  for (let percent = 0; percent < 50; percent += 1) await raise(id, percent);
  expect((await round()).mailed).toBe(20);
  const told = smtp.mails.map((mail) => Number(/percent: (\d+)/.exec(mail.text)![1]));
  expect(told).toEqual(Array.from({ length: 20 }, (_, percent) => percent));
  await waitFor('all', async () => {
    await Promise.all([round(), round(), round()]);
    return (await waiting()).length === 0;
  });
  const texts = new Set(smtp.mails.map((mail) => mail.text));
  expect([smtp.mails.length, texts.size]).toEqual([50, 50]);
});

test('what another process is mailing just now is left to it', async () => {
  const id = await newAccount(['a@example.com']);
  const taken = await raise(id, 1);
  await raise(id, 2);
  await db.transaction().execute(async (tx) => {
    await sql`SELECT 1 FROM account_events WHERE id = ${taken} FOR UPDATE`.execute(tx);
    expect((await round()).mailed).toBe(1);
  });
  expect(await waiting()).toEqual([taken]);
  expect(smtp.mails[0]!.text).toContain('percent: 2');
});

test('an event of which nobody could be told for 3 days is parked', async () => {
  const id = await newAccount(['a@example.com']);
  const [young, old] = [await raise(id), await raise(id)];
  const age = (event: string, hours: number) =>
    sql`UPDATE account_events SET created_at = now() - make_interval(hours => ${hours})
      WHERE id = ${event}`.execute(db);
  await age(young, 71);
  await age(old, 73);
  expect(await round()).toMatchObject({ mailed: 1, parked: [old] });
  expect(await waiting()).toEqual([old]);
  expect(await round()).toMatchObject({ mailed: 0, parked: [] });
});

describe('a mail that is not taken', () => {
  test('for its recipient holds up nobody else, and no other comes twice', async () => {
    const [first, refused, last] = [
      await newAccount(['first@example.com']),
      await newAccount(['full@example.com']),
      await newAccount(['last@example.com']),
    ];
    await raise(first);
    const event = await raise(refused);
    await raise(last);
    smtp.refusals.set('full@example.com', '452 Mailbox is full');
    expect(await round()).toMatchObject({ mailed: 2, refused: [event], failure: undefined });
    expect(await waiting()).toEqual([event]);
    expect(await round()).toMatchObject({ mailed: 0, refused: [] });
    smtp.refusals.clear();
    await wait();
    expect((await round()).mailed).toBe(1);
    expect(recipients()).toEqual(['first@example.com', 'last@example.com', 'full@example.com']);
  });

  test('for one of two recipients comes to the other once', async () => {
    const event = await raise(await newAccount(['full@example.com', 'b@example.com']));
    smtp.refusals.set('full@example.com', '452 Mailbox is full');
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect((await round()).refused).toEqual([event]);
      await wait();
    }
    smtp.refusals.clear();
    expect((await round()).mailed).toBe(1);
    expect(recipients()).toEqual(['b@example.com', 'full@example.com']);
  });

  test('because it cannot be made is parked after its attempts, and blocks nobody', async () => {
    const poison = await raise(await newAccount(['a@example.com']));
    // A line break makes an address that no mail may have.
    await sql`UPDATE users SET email = E'a@example.com\nb'`.execute(db);
    const good = await newAccount(['good@example.com']);
    for (let attempt = 1; attempt < REFUSED_ATTEMPTS_MAX; attempt += 1) {
      await raise(good, attempt);
      expect(await round()).toMatchObject({ mailed: 1, refused: [poison], parked: [] });
      const { next_at: nextAt } = await read(poison);
      const waitS = (nextAt.getTime() - Date.now()) / 1_000;
      expect(Math.abs(waitS - 600 * 2 ** (attempt - 1))).toBeLessThan(60);
      await wait();
    }
    expect(await round()).toMatchObject({ mailed: 0, parked: [poison] });
    expect(await read(poison)).toMatchObject({ mailed_at: null, parked_at: expect.any(Date) });
    await wait();
    expect(await round()).toMatchObject({ mailed: 0, refused: [], parked: [] });
    expect(smtp.mails).toHaveLength(REFUSED_ATTEMPTS_MAX - 1);
  });

  test('since its process died is sent by another, 2 minutes later', async () => {
    const event = await raise(await newAccount(['a@example.com']));
    await claimMail(db, 'account_events');
    expect((await round()).mailed).toBe(0);
    const { next_at: nextAt } = await read(event);
    expect(Math.abs(nextAt.getTime() - Date.now() - 120_000)).toBeLessThan(30_000);
    await wait();
    expect((await round()).mailed).toBe(1);
  });

  test('because the server is away ends the round: those before it do not come twice', async () => {
    const [first, last] = [await newAccount(['first@example.com']), await newAccount(['z@b.cd'])];
    await raise(first);
    const events = [await raise(last), await raise(first)];
    const send: Mailer['send'] = async (mail) => {
      await mailer.send(mail);
      await smtp.close();
    };
    const outcome = await round(send);
    expect(outcome).toMatchObject({ mailed: 1, refused: [], parked: [] });
    expect(String(outcome.failure)).toContain('ECONNREFUSED');
    expect(await waiting()).toEqual(events);
    expect(recipients()).toEqual(['first@example.com']);
    const [{ attempts, next_at: nextAt }, other] = [await read(events[0]!), await read(events[1]!)];
    expect([attempts, other.attempts]).toEqual([1, 0]);
    expect(nextAt.getTime() - Date.now()).toBeLessThan(60_000);
  });
});

describe('the loop', () => {
  test('mails what is raised, and tries a refused one again only later', async () => {
    let tried = 0;
    const send: Mailer['send'] = (mail) => {
      if (mail.to === 'full@example.com') tried += 1;
      return mailer.send(mail);
    };
    const loop = startEventMail({ db, mailer: { ...mailer, send }, publicUrl, log: silentLog });
    smtp.refusals.set('full@example.com', '550 No such user here');
    const [refused, good] = [
      await newAccount(['full@example.com']),
      await newAccount(['a@example.com']),
    ];
    const event = await raise(refused);
    for (let mails = 1; mails <= 3; mails += 1) {
      await raise(good);
      await waitFor('the mail', () => smtp.mails.length === mails);
    }
    await loop.close();
    expect(tried).toBe(1);
    expect(await waiting()).toEqual([event]);
  });

  test('goes on after the server was away', async () => {
    const id = await newAccount(['a@example.com']);
    let failures = 0;
    const send: Mailer['send'] = (mail) => {
      if (failures === 2) return mailer.send(mail);
      failures += 1;
      return Promise.reject(new Error('connect ECONNREFUSED'));
    };
    const loop = startEventMail({ db, mailer: { ...mailer, send }, publicUrl, log: silentLog });
    await raise(id);
    await waitFor('the mail', () => smtp.mails.length === 1);
    await loop.close();
    expect(await waiting()).toEqual([]);
  });
});
