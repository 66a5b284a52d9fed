import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { newId } from '../access/id.ts';
import { hashToken } from './secret-token.ts';
import { createSessions, SESSION_IDLE_S, SESSION_MAX_S, type Sessions } from './sessions.ts';

const HOME = '192.0.2.1';

let namespace: DatabaseNamespace;
let db: Database;
let sessions: Sessions;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  sessions = createSessions(db);
});

afterAll(async () => {
  await db?.destroy();
});

async function newUser() {
  const { id: accountId } = await createTestAccount(db, namespace, { tier: 'basic' });
  const id = newId('usr');
  const email = `${id}@example.com`;
  await db
    .insertInto('users')
    .values({ id, account_id: accountId, email, password_hash: '-' })
    .execute();
  return { id, accountId, email };
}

/** Shifts all times of a session into the past. */
async function age(token: string, seconds: number): Promise<void> {
  await sql`UPDATE sessions SET
      created_at = created_at - make_interval(secs => ${seconds}),
      last_seen_at = last_seen_at - make_interval(secs => ${seconds}),
      expires_at = expires_at - make_interval(secs => ${seconds})
    WHERE hash = ${hashToken(token)}`.execute(db);
}

const read = (token: string) =>
  db
    .selectFrom('sessions')
    .selectAll()
    .where('hash', '=', hashToken(token))
    .executeTakeFirstOrThrow();

test('a session is found by its token until it ends', async () => {
  const user = await newUser();
  const { token, session } = await sessions.begin(user.id, HOME);
  expect(session).toEqual({
    hash: hashToken(token),
    userId: user.id,
    accountId: user.accountId,
    email: user.email,
    role: 'owner',
    isVerified: false,
    csrfToken: expect.stringMatching(/^[\w-]{43}$/),
    expiresAt: expect.any(Date),
    secondFactor: { isOn: false, isFresh: false },
  });
  const lifeS = (session.expiresAt.getTime() - Date.now()) / 1_000;
  expect(Math.abs(lifeS - SESSION_MAX_S)).toBeLessThan(60);
  expect(await sessions.find(token)).toEqual(session);
  const { token: other } = await sessions.begin(user.id, HOME);
  await sessions.end(token);
  expect(await sessions.find(token)).toBeUndefined();
  expect(await sessions.find(other)).toBeDefined();
  await sessions.end(token);
  expect(await sessions.find('')).toBeUndefined();
});

test('neither the token nor its bytes are stored, and the CSRF token differs', async () => {
  const { token, session } = await sessions.begin((await newUser()).id, HOME);
  expect(session.csrfToken).not.toBe(token);
  const { rows } = await sql<{ text: string }>`SELECT s::text AS text FROM sessions s`.execute(db);
  const table = rows.map(({ text }) => text).join('\n');
  expect(table).toContain(session.csrfToken);
  expect(table).not.toContain(token);
  expect(table).not.toContain(Buffer.from(token, 'base64url').toString('hex'));
  expect(await sessions.find(session.csrfToken)).toBeUndefined();
});

test('a session shows at once that its user was verified', async () => {
  const user = await newUser();
  const { token } = await sessions.begin(user.id, HOME);
  await db
    .updateTable('users')
    .set({ email_verified_at: new Date() })
    .where('id', '=', user.id)
    .execute();
  expect(await sessions.find(token)).toMatchObject({ isVerified: true });
});

describe('a session ends', () => {
  test('after a day without use, not before', async () => {
    const { token } = await sessions.begin((await newUser()).id, HOME);
    await age(token, SESSION_IDLE_S - 60);
    expect(await sessions.find(token)).toBeDefined();
    // The read counted as use, so the idle time restarts.
    await age(token, SESSION_IDLE_S - 60);
    expect(await sessions.find(token)).toBeDefined();
    await age(token, SESSION_IDLE_S + 1);
    expect(await sessions.find(token)).toBeUndefined();
  });

  test('14 days after it began, even if it is used every hour', async () => {
    const { token } = await sessions.begin((await newUser()).id, HOME);
    let hours = 0;
    while ((await sessions.find(token)) !== undefined && hours < 1_000) {
      await age(token, 3_600);
      hours += 1;
    }
    expect(hours).toBe(SESSION_MAX_S / 3_600);
  });

  test('with its user', async () => {
    const user = await newUser();
    const { token } = await sessions.begin(user.id, HOME);
    await db.deleteFrom('users').where('id', '=', user.id).execute();
    expect(await sessions.find(token)).toBeUndefined();
  });

  test('as the oldest, when its user begins the 21st', async () => {
    const [user, other] = [await newUser(), await newUser()];
    const { token: others } = await sessions.begin(other.id, HOME);
    await age(others, 3_600);
    const tokens: string[] = [];
    for (let session = 0; session < 21; session += 1) {
      const { token } = await sessions.begin(user.id, HOME);
      for (const earlier of [...tokens, token]) await age(earlier, 1);
      tokens.push(token);
    }
    const found = await Promise.all(tokens.map((token) => sessions.find(token)));
    expect(found.map((session) => session !== undefined)).toEqual([
      false,
      ...Array.from({ length: 20 }, () => true),
    ]);
    expect(await sessions.find(others)).toBeDefined();
  });
});

test('10 concurrent sign-ins at the limit all get a session, and the oldest sessions end', async () => {
  const user = await newUser();
  const before: string[] = [];
  for (let session = 0; session < 20; session += 1) {
    before.push((await sessions.begin(user.id, HOME)).token);
  }
  const begun = await Promise.all(Array.from({ length: 10 }, () => sessions.begin(user.id, HOME)));
  const isOpen = async (token: string) => (await sessions.find(token)) !== undefined;
  const open = await Promise.all(begun.map(({ token }) => isOpen(token)));
  expect(open).toEqual(open.map(() => true));
  const left = await Promise.all(before.map(isOpen));
  expect(left).toEqual(left.map((_, session) => session >= 10));
});

test('uses are written to the minute: consecutive requests cost no write', async () => {
  const { token } = await sessions.begin((await newUser()).id, HOME);
  await age(token, 40);
  const before = await read(token);
  await sessions.find(token);
  expect(await read(token)).toEqual(before);
  await age(token, 40);
  await sessions.find(token);
  const after = await read(token);
  expect(after.last_seen_at.getTime()).toBeGreaterThan(before.last_seen_at.getTime());
  expect(after.address).toBe(HOME);
});
