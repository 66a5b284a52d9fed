import { beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { TEST_SIGN_UP, type TestUsers, useTestUsers } from '../../testing/users-fixture.ts';
import { fixedPepper } from '../access/pepper.ts';
import { closeAccount } from './account-closure.ts';
import { ATTEMPT_LIMITS } from './attempts.ts';
import { createPasswords } from './passwords.ts';
import { createTestBilling } from './test-billing.ts';
import { createUsers, type Users } from './users.ts';

const HOME = TEST_SIGN_UP.address;
const OLD = TEST_SIGN_UP.password;
const NEW = 'incorrect horse battery';
const wanted = TEST_SIGN_UP;
const fixture = useTestUsers();
const { readUser, readTokens, signIn, signUp, resetPassword, verify } = fixture;
let db: Database;
let opened: TestUsers;
let users: Users;
let email: string;

beforeEach(() => {
  ({ db, opened, users, email } = fixture.now());
});

describe('password attempts', () => {
  test('from many addresses of one IPv6 network count together', async () => {
    await signUp();
    for (let wrong = 0; wrong < ATTEMPT_LIMITS.passwordOfUser.max; wrong += 1) {
      expect(await signIn(NEW, `2001:db8::${wrong}`)).toBe('refused');
    }
    expect(await signIn(OLD, '2001:db8::ffff')).toBe('limited');
    expect(await signIn(OLD, '2001:db8:0:1::1')).toBe('ok');
  });

  test('in a session count like those of a sign-in', async () => {
    await signUp();
    const { id } = await readUser();
    for (let wrong = 0; wrong < ATTEMPT_LIMITS.passwordOfUser.max; wrong += 2) {
      expect(await users.checkPassword(id, NEW, HOME)).toEqual({ kind: 'refused' });
      expect(await users.changePassword(id, NEW, NEW, HOME)).toEqual({ kind: 'refused' });
    }
    opened.verified.length = 0;
    expect(await users.checkPassword(id, OLD, HOME)).toMatchObject({ kind: 'limited' });
    expect(await users.changePassword(id, OLD, NEW, HOME)).toMatchObject({ kind: 'limited' });
    expect(await signIn(OLD)).toBe('limited');
    expect(opened.verified).toEqual([]);
    expect(await users.checkPassword(id, OLD, '198.51.100.1')).toEqual({ kind: 'ok' });
  });

  test('from many networks are limited; the user can use a known network, or a mail', async () => {
    await signUp();
    const [known, elsewhere] = ['198.51.100.1', '198.51.100.2'];
    expect(await signIn(OLD, known)).toBe('ok');
    const { max } = ATTEMPT_LIMITS.passwordOfUserEverywhere;
    for (let wrong = 0; wrong < max; wrong += 1) {
      expect(await signIn(NEW, `203.0.${wrong >> 3}.${wrong & 7}`)).toBe('refused');
    }
    const limited = await users.signIn(email, OLD, { address: elsewhere });
    if (limited.kind !== 'limited') throw new Error(limited.kind);
    expect(limited.retryAfterS).toBeGreaterThan(23 * 3_600);
    expect(await signIn(OLD, known)).toBe('ok');
    expect(await signIn(OLD, elsewhere)).toBe('limited');
    await users.requestReset(email, HOME);
    expect(await resetPassword(await opened.mailedToken(2), NEW)).toBe('ok');
    expect(await signIn(NEW, elsewhere)).toBe('ok');
  });

  test('do not count if right: 120 sign-ins in a day, each from another network', async () => {
    await signUp();
    for (let right = 0; right < 120; right += 1) {
      expect(await signIn(OLD, `203.0.${right}.1`)).toBe('ok');
    }
  });
});

describe('a closed account', () => {
  beforeEach(async () => {
    await verify(await signUp());
    const { account_id: accountId } = await readUser();
    await closeAccount(
      {
        db,
        billing: createTestBilling({ pepper: fixedPepper(Buffer.alloc(32)), pageUrl: 'http://x' }),
      },
      { accountId, actor: 'user:usr_test' },
    );
  });

  test('is revealed only to a user with the right password, and begins no session', async () => {
    expect(await signIn(NEW)).toBe('refused');
    const closed = await users.signIn(email, OLD, { address: HOME });
    if (closed.kind !== 'closed') throw new Error(closed.kind);
    const days = (closed.erasedAt.getTime() - Date.now()) / 86_400_000;
    expect(Math.abs(days - 30)).toBeLessThan(0.01);
    const { id } = await readUser();
    const rows = await db.selectFrom('sessions').selectAll().where('user_id', '=', id).execute();
    expect(rows).toEqual([]);
  });

  test('gets a mail without a token after a sign-up or a reset request', async () => {
    expect(await users.requestReset(email, HOME)).toEqual({ kind: 'ok' });
    expect(await users.signUp({ ...wanted, email })).toEqual({ kind: 'ok' });
    expect(await users.resendVerification(email, HOME)).toEqual({ kind: 'ok' });
    const [, ...later] = await opened.subjects();
    expect(later).toEqual(['Your account is closed', 'Your account is closed']);
    expect(await readTokens()).toEqual([]);
  });
});

test('a sign-in that is overtaken by a new password begins no session', async () => {
  await signUp();
  const { id } = await readUser();
  const slow = createPasswords({ ln: 4, r: 8, p: 1 });
  let isChanged = false;
  const overtaken = createUsers({
    db,
    mails: opened.mails,
    publicUrl: 'http://127.0.0.1:1',
    attempts: opened.attempts,
    secondFactors: opened.secondFactors,
    passwords: {
      ...slow,
      async verify(password, hash) {
        const isRight = await slow.verify(password, hash);
        isChanged = (await users.changePassword(id, OLD, NEW, HOME)).kind === 'ok';
        return isRight;
      },
    },
  });
  expect(await overtaken.signIn(email, OLD, { address: HOME })).toEqual({ kind: 'refused' });
  expect(isChanged).toBe(true);
});
