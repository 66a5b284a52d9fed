import { beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../postgres/database.ts';
import { TEST_SIGN_UP, type TestUsers, useTestUsers } from '../testing/users.ts';
import { readAudit } from './audit.ts';
import { emailOfResetToken } from './mail-tokens.ts';
import { hashToken } from './secret-token.ts';
import type { Sessions } from './sessions.ts';
import { ATTEMPT_LIMITS, type Users } from './users.ts';

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

describe('a new password by mail', () => {
  /** Signs up, verifies and asks for it: the second mail. @returns the token in it */
  async function requestReset(): Promise<string> {
    await users.verifyEmail(await signUp());
    expect(await users.requestReset(email.toUpperCase(), HOME)).toEqual({ kind: 'ok' });
    return opened.mailedToken(2);
  }

  test('ends all sessions of the user and of nobody else, works once, and is told', async () => {
    const token = await requestReset();
    const own = await Promise.all([sessionOf(email), sessionOf(email)]);
    const otherEmail = `other.${email}`;
    await users.signUp({ ...wanted, email: otherEmail });
    const others = await sessionOf(otherEmail);
    await users.requestReset(email, HOME);
    expect(await emailOfResetToken(db, token)).toBe(email);
    expect(await users.resetPassword(token, NEW, HOME)).toBe(true);
    for (const session of own) expect(await sessions.find(session)).toBeUndefined();
    expect(await sessions.find(others)).toBeDefined();
    expect(await signIn(OLD)).toBe('refused');
    expect(await signIn(NEW)).toBe('ok');
    expect((await opened.subjects()).at(-1)).toBe('Your password was changed');
    // It is used up, and any other that was on its way is void.
    expect(await readTokens()).toEqual([]);
    expect(await users.resetPassword(token, OLD, HOME)).toBe(false);
    expect(await signIn(NEW)).toBe('ok');
    const { id, account_id: accountId } = await readUser();
    const audit = await readAudit(db, accountId, { limit: 10 });
    const changed = audit.filter(({ action }) => action === 'password.changed');
    expect(changed).toMatchObject([{ actor: `user:${id}`, address: HOME }]);
  });

  test('is had 30 min: an expired token changes nothing', async () => {
    const token = await requestReset();
    const [row] = await readTokens();
    const lifeMs = row!.expires_at.getTime() - row!.created_at.getTime();
    expect(Math.abs(lifeMs - 1_800_000)).toBeLessThan(60_000);
    const session = await sessionOf(email);
    await expire(token);
    expect(await users.resetPassword(token, NEW, HOME)).toBe(false);
    expect(await sessions.find(session)).toBeDefined();
    expect(await signIn(OLD)).toBe('ok');
    await opened.mails.idle();
    expect(opened.smtp.mails).toHaveLength(2);
    expect(await readTokens()).toEqual([]);
  });

  test('is not had by a token to verify an address, nor the other way', async () => {
    const verify = await signUp();
    expect(await emailOfResetToken(db, verify)).toBeUndefined();
    expect(await users.resetPassword(verify, NEW, HOME)).toBe(false);
    await users.requestReset(email, HOME);
    const reset = await opened.mailedToken(2);
    expect(await users.verifyEmail(reset)).toBe(false);
    expect(await users.verifyEmail(verify)).toBe(true);
    expect(await users.resetPassword(reset, NEW, HOME)).toBe(true);
  });

  test('verifies the address that the token came to', async () => {
    await signUp();
    await users.requestReset(email, HOME);
    const token = await opened.mailedToken(2);
    expect(await readUser()).toMatchObject({ email_verified_at: null });
    expect(await users.resetPassword(token, NEW, HOME)).toBe(true);
    const { email_verified_at: at, account_id: accountId } = await readUser();
    expect(at).toBeInstanceOf(Date);
    const audit = await readAudit(db, accountId, { limit: 2 });
    expect(audit.map(({ action }) => action)).toEqual(['email.verified', 'password.changed']);
  });

  test('of 20 that use one token at once one is the new one', async () => {
    const token = await requestReset();
    const passwords = Array.from({ length: 20 }, (_, index) => `${NEW} ${index}`);
    const used = await Promise.all(
      passwords.map((password) => users.resetPassword(token, password, HOME)),
    );
    expect(used.filter((isSet) => isSet)).toHaveLength(1);
    expect(await signIn(passwords[used.indexOf(true)]!)).toBe('ok');
  });

  test('is asked for nobody with the same answer and no mail; 5 an hour for one', async () => {
    expect(await users.requestReset(email, HOME)).toEqual({ kind: 'ok' });
    expect(await users.resendVerification(email, HOME)).toEqual({ kind: 'ok' });
    await opened.mails.idle();
    expect(opened.smtp.mails).toEqual([]);
    for (let mail = 2; mail < ATTEMPT_LIMITS.mailToUser.max; mail += 1) {
      expect(await users.requestReset(email, `192.0.2.${mail}`)).toEqual({ kind: 'ok' });
    }
    const limited = await users.requestReset(email, '198.51.100.1');
    if (limited.kind !== 'limited') throw new Error(limited.kind);
    expect(limited.retryAfterS).toBeGreaterThan(59 * 60);
    expect(limited.retryAfterS).toBeLessThanOrEqual(60 * 60);
  });
});

test('a new password by the old one ends all sessions; a wrong old one changes nothing', async () => {
  await signUp();
  const { id } = await readUser();
  const session = await sessionOf(email);
  expect(await users.changePassword(id, NEW, NEW, HOME)).toEqual({ kind: 'refused' });
  expect(await users.changePassword('usr_none', OLD, NEW, HOME)).toEqual({ kind: 'refused' });
  expect(await sessions.find(session)).toBeDefined();
  expect(await users.checkPassword(id, OLD, HOME)).toEqual({ kind: 'ok' });
  expect(await users.changePassword(id, OLD, NEW, HOME)).toEqual({ kind: 'ok' });
  expect(await sessions.find(session)).toBeUndefined();
  expect(await users.checkPassword(id, OLD, HOME)).toEqual({ kind: 'refused' });
  expect(await users.checkPassword(id, NEW, HOME)).toEqual({ kind: 'ok' });
  expect((await opened.subjects()).at(-1)).toBe('Your password was changed');
});

async function sessionOf(address: string): Promise<string> {
  const signedIn = await users.signIn(address, OLD, HOME);
  if (signedIn.kind !== 'ok') throw new Error(signedIn.kind);
  return signedIn.token;
}
