import type { ScryptOptions } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createPasswords,
  PASSWORD_CHARS_MAX,
  PASSWORD_CHARS_MIN,
  PasswordsBusyError,
  passwordFault,
} from './passwords.ts';

/** Arguments of each scrypt call; the work itself is real. */
const derived = vi.hoisted((): { salt: number; length: number; options: ScryptOptions }[] => []);

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  const scrypt = (...args: Parameters<typeof crypto.scrypt>) => {
    const [, salt, length, options] = args;
    derived.push({ salt: (salt as Buffer).length, length, options });
    crypto.scrypt(...args);
  };
  return { ...crypto, scrypt };
});

/** Fast enough for a test. */
const CHEAP = { ln: 4, r: 8, p: 1 };
const RIGHT = 'correct horse battery';
const passwords = createPasswords(CHEAP);

beforeEach(() => {
  derived.length = 0;
});

test('the right password passes, any other does not', async () => {
  const hash = await passwords.hash(RIGHT);
  expect(await passwords.verify(RIGHT, hash)).toBe(true);
  for (const wrong of ['', 'correct horse batter', `${RIGHT} `, RIGHT.toUpperCase(), hash]) {
    expect(await passwords.verify(wrong, hash)).toBe(false);
  }
});

test('a hash is salted, in PHC form, and carries its cost', async () => {
  const [one, other] = [await passwords.hash(RIGHT), await passwords.hash(RIGHT)];
  expect(one).toMatch(/^\$scrypt\$ln=4,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(one.split('$')[3]).not.toBe(other.split('$')[3]);
  expect(one.split('$')[4]).not.toBe(other.split('$')[4]);
  expect(await passwords.verify(RIGHT, other)).toBe(true);
});

test('new hashes have the cost that OWASP recommends', async () => {
  await createPasswords().hash(RIGHT);
  expect(derived).toEqual([
    { salt: 16, length: 32, options: expect.objectContaining({ N: 2 ** 17, r: 8, p: 1 }) },
  ]);
});

test('hashes of another cost are checked at their own cost', async () => {
  const old = [
    await createPasswords({ ln: 3, r: 4, p: 2 }).hash(RIGHT),
    await createPasswords({ ln: 10, r: 8, p: 1 }).hash(RIGHT),
  ];
  derived.length = 0;
  for (const hash of old) {
    expect(await passwords.verify(RIGHT, hash)).toBe(true);
    expect(await passwords.verify(`${RIGHT}!`, hash)).toBe(false);
  }
  const costs = derived.map(({ options: { N, r, p } }) => ({ N, r, p }));
  expect(costs[0]).toEqual({ N: 8, r: 4, p: 2 });
  expect(costs[2]).toEqual({ N: 1_024, r: 8, p: 1 });
});

test('a hash made by another program with the same parameters is accepted', async () => {
  const salt = Buffer.from('SodiumChloride').toString('base64').replaceAll('=', '');
  // RFC 7914, section 12: "pleaseletmein", "SodiumChloride", N = 16384, r = 8, p = 1.
  const hash = Buffer.from(
    '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2',
    'hex',
  );
  const text = `$scrypt$ln=14,r=8,p=1$${salt}$${hash.toString('base64').replaceAll('=', '')}`;
  expect(await passwords.verify('pleaseletmein', text)).toBe(true);
  expect(await passwords.verify('pleaseletmeout', text)).toBe(false);
});

test('an unknown user costs the same work, and no password passes', async () => {
  const hash = await passwords.hash(RIGHT);
  derived.length = 0;
  expect(await passwords.verify('wrong password', hash)).toBe(false);
  expect(await passwords.verify('wrong password', undefined)).toBe(false);
  expect(await passwords.verify('', undefined)).toBe(false);
  expect(derived).toHaveLength(3);
  expect(derived[1]).toEqual(derived[0]);
  expect(derived[2]).toEqual(derived[0]);
});

test.each([
  '',
  'plain text',
  '$scrypt$ln=4,r=8,p=1$c2FsdA$',
  '$scrypt$ln=4,r=8,p=1$$ZWlnaHRieXRlc2VpZ2h0Ynl0ZXNlaWdodGJ5dGVzZWk',
  '$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$ZWlnaHRieXRlc2VpZ2h0Ynl0ZXNlaWdodGJ5dGVzZWk',
])('a row with an invalid hash, %j, counts as an unknown user', async (text) => {
  expect(await passwords.verify(RIGHT, text)).toBe(false);
  expect(derived).toHaveLength(1);
});

test('two Unicode forms of a password are equal', async () => {
  const hash = await passwords.hash('Gro\u0308ße ﬁnden 12');
  expect(await passwords.verify('Größe finden 12', hash)).toBe(true);
  expect(await passwords.verify('Große finden 12', hash)).toBe(false);
});

test('requests beyond the queue are refused, and those in the queue are served', async () => {
  const asked = Array.from({ length: 60 }, () => passwords.hash(RIGHT));
  const settled = await Promise.allSettled(asked);
  const refused = settled.filter((one) => one.status === 'rejected');
  expect(settled.slice(0, 52).every((one) => one.status === 'fulfilled')).toBe(true);
  expect(refused).toHaveLength(8);
  expect(refused.every(({ reason }) => reason instanceof PasswordsBusyError)).toBe(true);
  // No slot was lost: the same number is accepted again.
  const again = await Promise.allSettled(Array.from({ length: 52 }, () => passwords.hash(RIGHT)));
  expect(again.every((one) => one.status === 'fulfilled')).toBe(true);
});

test('a failing hash returns its slot', async () => {
  const impossible = `$scrypt$ln=99,r=8,p=1$c2FsdA$${'A'.repeat(43)}`;
  const failed = await Promise.allSettled(
    Array.from({ length: 10 }, () => passwords.verify(RIGHT, impossible)),
  );
  expect(failed.every((one) => one.status === 'rejected')).toBe(true);
  const again = await Promise.allSettled(Array.from({ length: 52 }, () => passwords.hash(RIGHT)));
  expect(again.every((one) => one.status === 'fulfilled')).toBe(true);
});

describe('the password rules', () => {
  const email = 'trader.one@example.com';
  const varied = (chars: number) => 'abcdefgh'.repeat(17).slice(0, chars);

  test.each([
    varied(PASSWORD_CHARS_MIN),
    varied(PASSWORD_CHARS_MAX),
    'correct horse battery',
    // Ten characters of two UTF-16 units each.
    '🐎🔋📎🎯🧲🪝🛟🧷🪤🧯',
    'my password is long',
  ])('accept %j', (password) => {
    expect(passwordFault(password, email)).toBeUndefined();
  });

  test.each([
    ['', /at least 10/],
    [varied(PASSWORD_CHARS_MIN - 1), /at least 10/],
    // Ten code units, nine characters once composed.
    ['abcdefgho\u0308', /at least 10/],
    ['🐎🔋📎🎯🧲🪝🛟🧷🪤', /at least 10/],
    [varied(PASSWORD_CHARS_MAX + 1), /at most 128/],
    ['Trader.One@Example.com', /address/],
    ['TRADER.ONE', /address/],
  ])('refuse %j', (password, reason) => {
    expect(passwordFault(password, email)).toMatch(reason);
  });
});

describe('a new password', () => {
  const email = 'trader.one@example.com';
  const cheap = createPasswords({ ln: 4, r: 8, p: 1 });

  test.each([
    'password123',
    'Password123!',
    'P@ssw0rd2024',
    'Qwertyuiop[]',
    '1qaz2wsx3edc',
    '1234567890',
    'iloveyou123',
    'liverpool1',
    'summer2026!',
    'abcabcabcabc',
    'abcdefgh'.repeat(16),
    'pillole2026',
    'trader.one-1',
  ])('%j is easy to guess', async (password) => {
    expect(await cheap.hashNew(password, email)).toBeUndefined();
  });

  test.each([
    'correct horse battery',
    'my password is long',
    'Größe finden 12',
    '🐎🔋📎🎯🧲🪝🛟🧷🪤🧯',
    'xK4#qpRw9Tz!',
  ])('%j is not', async (password) => {
    const hash = await cheap.hashNew(password, email);
    expect(await cheap.verify(password, hash)).toBe(true);
  });

  test('is judged by its start, so that the longest costs no more than a short one', async () => {
    const start = 'xK4#qpRw9Tz!xK4#qpRw9Tz!';
    const end = '4@3!1|0$5+7%2'.repeat(8);
    expect(await cheap.hashNew(start + end, email)).toBeDefined();
    expect(await cheap.hashNew(`${'a'.repeat(24)}${start}`, email)).toBeUndefined();
  });
});
