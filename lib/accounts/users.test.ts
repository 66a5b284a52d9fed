import { beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../log.ts';
import { createMailQueue } from '../mail/mail-queue.ts';
import type { Database } from '../postgres/database.ts';
import { TEST_SIGN_UP, type TestUsers, useTestUsers } from '../testing/users.ts';
import { readAudit } from './audit.ts';
import { PASSWORD_LIMITS } from './password-attempts.ts';
import { createPasswords } from './passwords.ts';
import { hashToken } from './secret-token.ts';
import type { Sessions } from './sessions.ts';
import { ATTEMPT_LIMITS, createUsers, SIGN_UP_MIN_MS, type Users } from './users.ts';

const HOME = TEST_SIGN_UP.address;
const OLD = TEST_SIGN_UP.password;
const NEW = 'incorrect horse battery';
const wanted = TEST_SIGN_UP;
const stage = useTestUsers();
const { readUser, readTokens, signUp } = stage;
let db: Database;
let opened: TestUsers;
let users: Users;
let sessions: Sessions;
let email: string;

beforeEach(() => {
  ({ db, opened, users, sessions, email } = stage.now());
});

async function signIn(password: string, address = HOME): Promise<string> {
  return (await users.signIn(email, password, address)).kind;
}

async function expire(token: string): Promise<void> {
  const expired = await db
    .updateTable('mail_tokens')
    .set({ expires_at: new Date(Date.now() - 1) })
    .where('hash', '=', hashToken(token))
    .executeTakeFirst();
  expect(expired.numUpdatedRows).toBe(1n);
}

describe('signing up', () => {
  test('makes a user, whose address is verified once by the mailed token', async () => {
    const token = await signUp();
    expect(opened.smtp.mails[0]!.recipients).toEqual([email]);
    expect(await readUser()).toMatchObject({ email_verified_at: null });
    expect(await users.verifyEmail(token)).toBe(true);
    const { email_verified_at: at, account_id: accountId } = await readUser();
    expect(at).toBeInstanceOf(Date);
    expect(await users.verifyEmail(token)).toBe(false);
    expect(await users.verifyEmail('a'.repeat(43))).toBe(false);
    const audit = await readAudit(db, accountId, { limit: 10 });
    expect(audit.map(({ action }) => action)).toEqual(['email.verified', 'account.opened']);
    expect(JSON.stringify([await readUser(), audit])).not.toContain(OLD);
  });

  test('lives 24 h in its mail: an expired token is refused and gone, another can be had', async () => {
    const token = await signUp();
    const [row] = await readTokens();
    const lifeMs = row!.expires_at.getTime() - row!.created_at.getTime();
    expect(Math.abs(lifeMs - 86_400_000)).toBeLessThan(60_000);
    await expire(token);
    expect(await users.verifyEmail(token)).toBe(false);
    expect(await readUser()).toMatchObject({ email_verified_at: null });
    expect(await readTokens()).toEqual([]);
    expect(await users.resendVerification(email.toUpperCase(), HOME)).toEqual({ kind: 'ok' });
    expect(await users.verifyEmail(await opened.mailedToken(2))).toBe(true);
    // Nothing is left to verify.
    expect(await users.resendVerification(email, HOME)).toEqual({ kind: 'ok' });
    await opened.mails.idle();
    expect(opened.smtp.mails).toHaveLength(2);
  });

  test('with a known address answers the same, changes nothing and tells its owner', async () => {
    await signUp();
    const before = await readUser();
    const again = { ...wanted, email: email.toUpperCase(), password: NEW };
    expect(await users.signUp(again)).toEqual({ kind: 'ok' });
    expect(await readUser()).toEqual(before);
    expect((await opened.subjects())[1]).toBe('You have an account already');
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

  test('20 times at once makes one user, all answered the same', async () => {
    const made = await Promise.all(
      Array.from({ length: 20 }, () => users.signUp({ ...wanted, email })),
    );
    expect(made).toEqual(made.map(() => ({ kind: 'ok' })));
    expect(
      (await opened.subjects()).filter((subject) => subject === 'Verify your e-mail address'),
    ).toHaveLength(1);
    // Strangers cannot have more than 5 an hour sent to it.
    await opened.mails.idle();
    expect(opened.smtp.mails).toHaveLength(1 + ATTEMPT_LIMITS.mailToUser.max);
  });

  test('is not told apart when the mail cannot leave, and may be tried again', async () => {
    opened.smtp.refusals.set(email, '550 No such user here');
    expect(await users.signUp({ ...wanted, email })).toEqual({ kind: 'ok' });
    expect(await users.requestReset(email, HOME)).toEqual({ kind: 'ok' });
    await opened.mails.idle();
    opened.smtp.refusals.clear();
    expect(await users.resendVerification(email, HOME)).toEqual({ kind: 'ok' });
    expect(await users.verifyEmail(await opened.mailedToken(1))).toBe(true);
  });
});

describe('signing in', () => {
  test('gives a session, in any case of the address', async () => {
    await signUp();
    const signedIn = await users.signIn(email.toUpperCase(), OLD, HOME);
    if (signedIn.kind !== 'ok') throw new Error(signedIn.kind);
    const { id, account_id: accountId, last_sign_in_at: at } = await readUser();
    expect(signedIn.session).toMatchObject({ userId: id, accountId, email, isVerified: false });
    expect(await sessions.find(signedIn.token)).toEqual(signedIn.session);
    expect(at).toBeInstanceOf(Date);
    const [entry] = await readAudit(db, accountId, { limit: 1 });
    expect(entry).toMatchObject({ action: 'session.begun', actor: `user:${id}`, address: HOME });
  });

  test('with a wrong password and as nobody are one answer, for the same work', async () => {
    await signUp();
    const wrong = await users.signIn(email, NEW, HOME);
    const nobody = await users.signIn(`nobody${email}`, OLD, HOME);
    expect(wrong).toEqual({ kind: 'refused' });
    expect(nobody).toEqual(wrong);
    expect(opened.verified).toEqual([(await readUser()).password_hash, undefined]);
    expect(await users.checkPassword('usr_none', OLD, HOME)).toEqual({ kind: 'refused' });
    expect(opened.verified).toHaveLength(3);
  });

  test('is limited for one user from one address, not from elsewhere', async () => {
    await signUp();
    for (let wrong = 0; wrong < PASSWORD_LIMITS.ofUser.max; wrong += 1) {
      expect(await signIn(NEW)).toBe('refused');
    }
    opened.verified.length = 0;
    const limited = await users.signIn(email.toUpperCase(), OLD, HOME);
    if (limited.kind !== 'limited') throw new Error(limited.kind);
    expect(limited.retryAfterS).toBeGreaterThan(14 * 60);
    expect(limited.retryAfterS).toBeLessThanOrEqual(15 * 60);
    expect(opened.verified).toEqual([]);
    expect(await signIn(OLD, '198.51.100.1')).toBe('ok');
    expect(await signIn(OLD)).toBe('limited');
  });

  test('that succeeds forgets the wrong ones before it', async () => {
    await signUp();
    for (let round = 0; round < 3; round += 1) {
      for (let wrong = 1; wrong < PASSWORD_LIMITS.ofUser.max; wrong += 1) {
        expect(await signIn(NEW)).toBe('refused');
      }
      expect(await signIn(OLD)).toBe('ok');
    }
  });

  test('is limited from one address over all users', async () => {
    await signUp();
    for (let user = 0; user < PASSWORD_LIMITS.fromNetwork.max; user += 1) {
      const answer = await users.signIn(`other${user}@example.com`, NEW, HOME);
      expect(answer.kind).toBe('refused');
    }
    expect(await signIn(OLD)).toBe('limited');
    expect(await signIn(OLD, '198.51.100.1')).toBe('ok');
  });
});

test('sign-ups and mails from one address are limited', async () => {
  for (let user = 0; user < ATTEMPT_LIMITS.signUpFromNetwork.max; user += 1) {
    await users.signUp({ ...wanted, email: `${user}.${email}` });
  }
  expect(await users.signUp({ ...wanted, email })).toMatchObject({ kind: 'limited' });
  expect(await users.signUp({ ...wanted, email, address: '198.51.100.1' })).toEqual({ kind: 'ok' });
  for (let user = 0; user < ATTEMPT_LIMITS.mailFromNetwork.max; user += 1) {
    expect(await users.requestReset(`nobody${user}@example.com`, HOME)).toEqual({ kind: 'ok' });
  }
  expect(await users.requestReset(email, HOME)).toMatchObject({ kind: 'limited' });
});

test('answers do not wait for mails, and tell nothing when no mail can leave', async () => {
  const full = createMailQueue({
    mailer: { send: () => new Promise(() => {}) },
    log: silentLog,
    mailsMax: 2,
    drainMs: 1,
  });
  const stuck = createUsers({
    ...{ db, mails: full, publicUrl: 'http://127.0.0.1:1' },
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

test('a sign-up takes no less for a known address than for a new one', async () => {
  for (let time = 0; time < 2; time += 1) {
    const began = performance.now();
    await users.signUp({ ...wanted, email });
    // A lower bound alone: it holds on the slowest machine.
    expect(performance.now() - began).toBeGreaterThan(SIGN_UP_MIN_MS - 5);
  }
});
