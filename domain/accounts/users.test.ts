import { beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import { createMailQueue } from '../../lib/mail/mail-queue.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { TEST_SIGN_UP, type TestUsers, useTestUsers } from '../../testing/users-fixture.ts';
import { ATTEMPT_LIMITS } from './attempts.ts';
import { readAudit } from './audit.ts';
import { createPasswords } from './passwords.ts';
import type { Sessions } from './sessions.ts';
import { SIGN_UP_MIN_MS } from './sign-up.ts';
import { createUsers, type Users } from './users.ts';

const HOME = TEST_SIGN_UP.address;
const OLD = TEST_SIGN_UP.password;
const NEW = 'incorrect horse battery';
const wanted = TEST_SIGN_UP;
const fixture = useTestUsers();
const { expire, readUser, readTokens, signIn, signUp, verify } = fixture;
let db: Database;
let opened: TestUsers;
let users: Users;
let sessions: Sessions;
let email: string;

beforeEach(() => {
  ({ db, opened, users, sessions, email } = fixture.now());
});

describe('signing up', () => {
  test('creates a user whose address is verified once by the mailed token', async () => {
    const token = await signUp();
    expect(opened.smtp.mails[0]!.recipients).toEqual([email]);
    expect(await readUser()).toMatchObject({ email_verified_at: null });
    expect(await verify(token)).toBe('ok');
    const { email_verified_at: at, account_id: accountId } = await readUser();
    expect(at).toBeInstanceOf(Date);
    expect(await verify(token)).toBe('invalid');
    expect(await verify('a'.repeat(43))).toBe('invalid');
    const audit = await readAudit(db, accountId, { limit: 10 });
    expect(audit.map(({ action }) => action)).toEqual(['email.verified', 'account.opened']);
    expect(JSON.stringify([await readUser(), audit])).not.toContain(OLD);
  });

  test('mails a token for 24 h: an expired one is refused, a new one can be requested', async () => {
    const token = await signUp();
    const [row] = await readTokens();
    const lifeMs = row!.expires_at.getTime() - row!.created_at.getTime();
    expect(Math.abs(lifeMs - 86_400_000)).toBeLessThan(60_000);
    await expire(token);
    expect(await verify(token)).toBe('invalid');
    expect(await readUser()).toMatchObject({ email_verified_at: null });
    expect(await users.resendVerification(email.toUpperCase(), HOME)).toEqual({ kind: 'ok' });
    expect(await verify(await opened.mailedToken(2))).toBe('ok');
    // The address is already verified.
    expect(await users.resendVerification(email, HOME)).toEqual({ kind: 'ok' });
    await opened.mails.idle();
    expect(opened.smtp.mails).toHaveLength(2);
  });

  test('with a known address gets the same answer, changes nothing and notifies the owner', async () => {
    await signUp();
    const before = await readUser();
    const again = { ...wanted, email: email.toUpperCase(), password: NEW };
    expect(await users.signUp(again)).toEqual({ kind: 'ok' });
    expect(await readUser()).toEqual(before);
    expect((await opened.subjects())[1]).toBe('You already have an account');
    expect(opened.smtp.mails[1]!.text).not.toMatch(/token/);
    expect(await signIn(NEW)).toBe('refused');
    expect(await signIn(OLD)).toBe('ok');
    const accounts = db.selectFrom('accounts').where('name', '=', wanted.accountName);
    const { rows } = await accounts
      .select((eb) => eb.fn.countAll<string>().as('rows'))
      .where('id', 'not in', db.selectFrom('users').select('account_id'))
      .executeTakeFirstOrThrow();
    expect(rows).toBe('0');
  });

  test('20 times concurrently creates one user, with the same answer to all', async () => {
    const made = await Promise.all(
      Array.from({ length: 20 }, () => users.signUp({ ...wanted, email })),
    );
    expect(made).toEqual(made.map(() => ({ kind: 'ok' })));
    expect(
      (await opened.subjects()).filter((subject) => subject === 'Verify your e-mail address'),
    ).toHaveLength(1);
    // Strangers can trigger at most 5 mails an hour to an address.
    await opened.mails.idle();
    expect(opened.smtp.mails).toHaveLength(1 + ATTEMPT_LIMITS.mailToUser.max);
  });

  test('gets the same answer if the mail cannot be sent, and can be retried', async () => {
    opened.smtp.refusals.set(email, '550 No such user here');
    expect(await users.signUp({ ...wanted, email })).toEqual({ kind: 'ok' });
    expect(await users.requestReset(email, HOME)).toEqual({ kind: 'ok' });
    await opened.mails.idle();
    opened.smtp.refusals.clear();
    expect(await users.resendVerification(email, HOME)).toEqual({ kind: 'ok' });
    expect(await verify(await opened.mailedToken(1))).toBe('ok');
  });
});

describe('signing in', () => {
  test('gives a session, in any case of the address', async () => {
    await signUp();
    const signedIn = await users.signIn(email.toUpperCase(), OLD, { address: HOME });
    if (signedIn.kind !== 'ok') throw new Error(signedIn.kind);
    const { id, account_id: accountId, last_sign_in_at: at } = await readUser();
    expect(signedIn.session).toMatchObject({ userId: id, accountId, email, isVerified: false });
    expect(await sessions.find(signedIn.token)).toEqual(signedIn.session);
    expect(at).toBeInstanceOf(Date);
    const [entry] = await readAudit(db, accountId, { limit: 1 });
    expect(entry).toMatchObject({ action: 'session.begun', actor: `user:${id}`, address: HOME });
  });

  test('with a wrong password or as an unknown user gets the same answer, for the same work', async () => {
    await signUp();
    const wrong = await users.signIn(email, NEW, { address: HOME });
    const unknown = await users.signIn(`unknown${email}`, OLD, { address: HOME });
    expect(wrong).toEqual({ kind: 'refused' });
    expect(unknown).toEqual(wrong);
    expect(opened.verified).toEqual([(await readUser()).password_hash, undefined]);
    expect(await users.checkPassword('usr_none', OLD, HOME)).toEqual({ kind: 'refused' });
    expect(opened.verified).toHaveLength(3);
  });

  test('is limited per user and address, but not from other addresses', async () => {
    await signUp();
    for (let wrong = 0; wrong < ATTEMPT_LIMITS.passwordOfUser.max; wrong += 1) {
      expect(await signIn(NEW)).toBe('refused');
    }
    opened.verified.length = 0;
    const limited = await users.signIn(email.toUpperCase(), OLD, { address: HOME });
    if (limited.kind !== 'limited') throw new Error(limited.kind);
    expect(limited.retryAfterS).toBeGreaterThan(14 * 60);
    expect(limited.retryAfterS).toBeLessThanOrEqual(15 * 60);
    expect(opened.verified).toEqual([]);
    expect(await signIn(OLD, '198.51.100.1')).toBe('ok');
    expect(await signIn(OLD)).toBe('limited');
  });

  test('that succeeds resets the wrong attempts before it', async () => {
    await signUp();
    for (let round = 0; round < 3; round += 1) {
      for (let wrong = 1; wrong < ATTEMPT_LIMITS.passwordOfUser.max; wrong += 1) {
        expect(await signIn(NEW)).toBe('refused');
      }
      expect(await signIn(OLD)).toBe('ok');
    }
  });

  test('is limited per address over all users', async () => {
    await signUp();
    for (let user = 0; user < ATTEMPT_LIMITS.passwordFromNetwork.max; user += 1) {
      const answer = await users.signIn(`other${user}@example.com`, NEW, { address: HOME });
      expect(answer.kind).toBe('refused');
    }
    expect(await signIn(OLD)).toBe('limited');
    expect(await signIn(OLD, '198.51.100.1')).toBe('ok');
  });
});

test('sign-ups and mails are limited per address', async () => {
  for (let user = 0; user < ATTEMPT_LIMITS.signUpFromNetwork.max; user += 1) {
    await users.signUp({ ...wanted, email: `${user}.${email}` });
  }
  expect(await users.signUp({ ...wanted, email })).toMatchObject({ kind: 'limited' });
  expect(await users.signUp({ ...wanted, email, address: '198.51.100.1' })).toEqual({ kind: 'ok' });
  for (let user = 0; user < ATTEMPT_LIMITS.mailFromNetwork.max; user += 1) {
    expect(await users.requestReset(`unknown${user}@example.com`, HOME)).toEqual({ kind: 'ok' });
  }
  expect(await users.requestReset(email, HOME)).toMatchObject({ kind: 'limited' });
});

test('answers neither wait for mails nor reveal that no mail can be sent', async () => {
  const full = createMailQueue({
    mailer: { send: () => new Promise(() => {}) },
    log: silentLog,
    mailsMax: 2,
    drainMs: 1,
  });
  const stuck = createUsers({
    db,
    mails: full,
    publicUrl: 'http://127.0.0.1:1',
    attempts: opened.attempts,
    secondFactors: opened.secondFactors,
    passwords: createPasswords({ ln: 4, r: 8, p: 1 }),
  });
  try {
    for (const to of [email, email, `other.${email}`]) {
      expect(await stuck.signUp({ ...wanted, email: to })).toEqual({ kind: 'ok' });
      expect(await stuck.requestReset(to, HOME)).toEqual({ kind: 'ok' });
      expect(await stuck.resendVerification(to, HOME)).toEqual({ kind: 'ok' });
    }
  } finally {
    await full.close();
  }
});

test('a sign-up with a known address takes at least as long as with a new one', async () => {
  for (let time = 0; time < 2; time += 1) {
    const began = performance.now();
    await users.signUp({ ...wanted, email });
    // Only a lower bound, which holds on the slowest machine too.
    expect(performance.now() - began).toBeGreaterThan(SIGN_UP_MIN_MS - 5);
  }
});
