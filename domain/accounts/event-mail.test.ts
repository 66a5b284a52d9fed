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
import { openTestSmtp, type TestSmtp } from '../../testing/smtp.ts';
import { waitFor } from '../../testing/wait.ts';
import { newId } from '../access/id.ts';
import { mailEvents, startEventMail } from './event-mail.ts';
import { claimMail, REFUSED_ATTEMPTS_MAX } from './mail-claims.ts';

const publicUrl = 'http://127.0.0.1:1';

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
  await sql`TRUNCATE accounts CASCADE`.execute(db);
  smtp = await openTestSmtp();
  mailer = openMailer(smtp.config);
});

afterEach(async () => {
  mailer.close();
  await smtp.close();
});

/** Creates an account with a user for each address. */
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
/** Ends the waits of all events. */
const endWaits = () => sql`UPDATE account_events SET next_at = now()`.execute(db);
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

test('an event is mailed once, only to the verified users of its account', async () => {
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

test('concurrent processes mail each event once, oldest first', async () => {
  const id = await newAccount(['a@example.com']);
  for (let percent = 0; percent < 50; percent += 1) await raise(id, percent);
  expect((await round()).mailed).toBe(20);
  const percents = smtp.mails.map((mail) => Number(/percent: (\d+)/.exec(mail.text)![1]));
  expect(percents).toEqual(Array.from({ length: 20 }, (_, percent) => percent));
  await waitFor('all events to be mailed', async () => {
    await Promise.all([round(), round(), round()]);
    return (await waiting()).length === 0;
  });
  const texts = new Set(smtp.mails.map((mail) => mail.text));
  expect([smtp.mails.length, texts.size]).toEqual([50, 50]);
});

test('an event that another process is mailing is skipped', async () => {
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

test('an event that could not be mailed for 3 days is parked', async () => {
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

describe('a mail that is not accepted', () => {
  test('because of its recipient neither delays nor repeats other mails', async () => {
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
    await endWaits();
    expect((await round()).mailed).toBe(1);
    expect(recipients()).toEqual(['first@example.com', 'last@example.com', 'full@example.com']);
  });

  test('for one of two recipients reaches the other once', async () => {
    const event = await raise(await newAccount(['full@example.com', 'b@example.com']));
    smtp.refusals.set('full@example.com', '452 Mailbox is full');
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect((await round()).refused).toEqual([event]);
      await endWaits();
    }
    smtp.refusals.clear();
    expect((await round()).mailed).toBe(1);
    expect(recipients()).toEqual(['b@example.com', 'full@example.com']);
  });

  test('because it cannot be composed is parked after its attempts, and blocks no other', async () => {
    const poison = await raise(await newAccount(['a@example.com']));
    // An address with a line break is invalid in a mail.
    await sql`UPDATE users SET email = E'a@example.com\nb'`.execute(db);
    const good = await newAccount(['good@example.com']);
    for (let attempt = 1; attempt < REFUSED_ATTEMPTS_MAX; attempt += 1) {
      await raise(good, attempt);
      expect(await round()).toMatchObject({ mailed: 1, refused: [poison], parked: [] });
      const { next_at: nextAt } = await read(poison);
      const waitS = (nextAt.getTime() - Date.now()) / 1_000;
      expect(Math.abs(waitS - 600 * 2 ** (attempt - 1))).toBeLessThan(60);
      await endWaits();
    }
    expect(await round()).toMatchObject({ mailed: 0, parked: [poison] });
    expect(await read(poison)).toMatchObject({ mailed_at: null, parked_at: expect.any(Date) });
    await endWaits();
    expect(await round()).toMatchObject({ mailed: 0, refused: [], parked: [] });
    expect(smtp.mails).toHaveLength(REFUSED_ATTEMPTS_MAX - 1);
  });

  test('because its process died is sent by another process, 2 minutes later', async () => {
    const event = await raise(await newAccount(['a@example.com']));
    await claimMail(db, 'account_events');
    expect((await round()).mailed).toBe(0);
    const { next_at: nextAt } = await read(event);
    expect(Math.abs(nextAt.getTime() - Date.now() - 120_000)).toBeLessThan(30_000);
    await endWaits();
    expect((await round()).mailed).toBe(1);
  });

  test('because the server is unavailable ends the round without repeating earlier mails', async () => {
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
  test('mails new events, and retries a refused one only later', async () => {
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

  test('continues after the server was unavailable', async () => {
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
