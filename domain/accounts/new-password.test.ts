import { beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { TEST_SIGN_UP, type TestUsers, useTestUsers } from '../../testing/users-fixture.ts';
import { ATTEMPT_LIMITS } from './attempts.ts';
import { readAudit } from './audit.ts';
import { userOfToken } from './mail-tokens.ts';
import type { Sessions } from './sessions.ts';
import type { Users } from './users.ts';

const HOME = TEST_SIGN_UP.address;
const OLD = TEST_SIGN_UP.password;
const NEW = 'incorrect horse battery';
const wanted = TEST_SIGN_UP;
const fixture = useTestUsers();
const { expire, readUser, readTokens, signIn, signUp, resetPassword, verify } = fixture;
let db: Database;
let opened: TestUsers;
let users: Users;
let sessions: Sessions;
let email: string;

beforeEach(() => {
  ({ db, opened, users, sessions, email } = fixture.now());
});

describe('a new password by mail', () => {
  /** Signs up, verifies and requests a reset, which is the second mail. @returns its token */
  async function requestReset(): Promise<string> {
    await verify(await signUp());
    expect(await users.requestReset(email.toUpperCase(), HOME)).toEqual({ kind: 'ok' });
    return opened.mailedToken(2);
  }

  test('ends all sessions of only this user, works once, and leaves a row that is mailed', async () => {
    const token = await requestReset();
    const own = await Promise.all([sessionOf(email), sessionOf(email)]);
    const otherEmail = `other.${email}`;
    await users.signUp({ ...wanted, email: otherEmail });
    const others = await sessionOf(otherEmail);
    await users.requestReset(email, HOME);
    expect(await userOfToken(db, token, 'reset_password')).toMatchObject({ email });
    expect(await resetPassword(token, NEW)).toBe('ok');
    for (const session of own) expect(await sessions.find(session)).toBeUndefined();
    expect(await sessions.find(others)).toBeDefined();
    expect(await signIn(OLD)).toBe('refused');
    expect(await signIn(NEW)).toBe('ok');
    expect(await changedMails()).toEqual([{ email, address: HOME, at: expect.any(String) }]);
    // The token is used up, and any other outstanding token is void.
    expect(await readTokens()).toEqual([]);
    expect(await resetPassword(token, OLD)).toBe('invalid');
    expect(await signIn(NEW)).toBe('ok');
    const { id, account_id: accountId } = await readUser();
    const audit = await readAudit(db, accountId, { limit: 10 });
    const changed = audit.filter(({ action }) => action === 'password.changed');
    expect(changed).toMatchObject([{ actor: `user:${id}`, address: HOME }]);
  });

  test('needs a token of the last 30 min: an expired one changes nothing', async () => {
    const token = await requestReset();
    const [row] = await readTokens();
    const lifeMs = row!.expires_at.getTime() - row!.created_at.getTime();
    expect(Math.abs(lifeMs - 1_800_000)).toBeLessThan(60_000);
    const session = await sessionOf(email);
    await expire(token);
    expect(await resetPassword(token, NEW)).toBe('invalid');
    expect(await sessions.find(session)).toBeDefined();
    expect(await signIn(OLD)).toBe('ok');
    await opened.mails.idle();
    expect(opened.smtp.mails).toHaveLength(2);
    expect(await readTokens()).toEqual([]);
  });

  test('does not accept a verification token, nor does a verification accept a reset token', async () => {
    const first = await signUp();
    expect(await userOfToken(db, first, 'reset_password')).toBeUndefined();
    expect(await resetPassword(first, NEW)).toBe('invalid');
    await users.requestReset(email, HOME);
    const reset = await opened.mailedToken(2);
    expect(await verify(reset)).toBe('invalid');
    expect(await verify(first)).toBe('ok');
    expect(await resetPassword(reset, NEW)).toBe('ok');
  });

  test('verifies the address that received the token', async () => {
    await signUp();
    await users.requestReset(email, HOME);
    const token = await opened.mailedToken(2);
    expect(await readUser()).toMatchObject({ email_verified_at: null });
    expect(await resetPassword(token, NEW)).toBe('ok');
    const { email_verified_at: at, account_id: accountId } = await readUser();
    expect(at).toBeInstanceOf(Date);
    const audit = await readAudit(db, accountId, { limit: 2 });
    expect(audit.map(({ action }) => action)).toEqual(['email.verified', 'password.changed']);
  });

  test('is set by only one of 20 concurrent uses of a token', async () => {
    const token = await requestReset();
    const passwords = Array.from({ length: 20 }, (_, index) => `${NEW} ${index}`);
    const used = await Promise.all(passwords.map((password) => resetPassword(token, password)));
    expect(used.filter((kind) => kind === 'ok')).toHaveLength(1);
    expect(await signIn(passwords[used.indexOf('ok')]!)).toBe('ok');
  });

  test('for an unknown user gets the same answer and no mail; 5 requests an hour per user', async () => {
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

test('a new password set by the old one ends all sessions and leaves a row that is mailed; a wrong old one changes nothing', async () => {
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
  expect(await changedMails()).toEqual([{ email, address: HOME, at: expect.any(String) }]);
});

async function sessionOf(address: string): Promise<string> {
  const signedIn = await users.signIn(address, OLD, { address: HOME });
  if (signedIn.kind !== 'ok') throw new Error(signedIn.kind);
  return signedIn.token;
}

/** The rows that wait to be mailed: no crash after the change loses them. */
async function changedMails(): Promise<unknown[]> {
  const rows = await db
    .selectFrom('account_events')
    .select('data')
    .where('account_id', '=', (await readUser()).account_id)
    .where('type', '=', 'password.changed')
    .where('mailed_at', 'is', null)
    .execute();
  return rows.map(({ data }) => data);
}
