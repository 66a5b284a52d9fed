import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { fixedPepper } from '../domain/access/pepper.ts';
import { createSeal } from '../domain/access/sealing.ts';
import { type Attempts, createAttempts } from '../domain/accounts/attempts.ts';
import { createPasswords, type Passwords } from '../domain/accounts/passwords.ts';
import { createSecondFactors, type SecondFactors } from '../domain/accounts/second-factor.ts';
import { hashToken } from '../domain/accounts/secret-token.ts';
import { createSessions, type Sessions } from '../domain/accounts/sessions.ts';
import { createUsers, type Users } from '../domain/accounts/users.ts';
import { silentLog } from '../lib/log/log.ts';
import { createMailQueue, type MailQueue } from '../lib/mail/mail-queue.ts';
import { openMailer } from '../lib/mail/mailer.ts';
import type { Database } from '../lib/postgres/database.ts';
import { openTestDatabase } from './accounts.ts';
import { createDatabaseNamespace, type DatabaseNamespace } from './database-namespace.ts';
import { headerOf, openTestSmtp, type TestSmtp } from './smtp.ts';

/** Users with a real SMTP server and cheap password hashes. */
export interface TestUsers {
  readonly users: Users;
  readonly attempts: Attempts;
  readonly secondFactors: SecondFactors;
  readonly sessions: Sessions;
  readonly smtp: TestSmtp;
  /** The hashes that passwords were compared with; undefined = of an unknown user. */
  readonly verified: (string | undefined)[];
  /** Mails that wait to be sent. */
  readonly mails: MailQueue;
  /** The subjects of all mails, after all are sent. */
  subjects(): Promise<readonly (string | undefined)[]>;
  /** The token in the newest mail, after all are sent. @throws Error unless `count` mails arrived */
  mailedToken(count: number): Promise<string>;
  close(): Promise<void>;
}

/** Opens users on a database, without earlier attempts. */
export async function openTestUsers(db: Database): Promise<TestUsers> {
  const smtp = await openTestSmtp();
  const mailer = openMailer(smtp.config);
  const mails = createMailQueue({ mailer, log: silentLog, retryWaitsMs: [] });
  const sessions = createSessions(db);
  // Earlier tests used the same network.
  await db.deleteFrom('attempts').execute();
  const attempts = createAttempts(db);
  const seal = createSeal(fixedPepper(randomBytes(32)));
  const secondFactors = createSecondFactors({ db, seal, attempts });
  const cheap = createPasswords({ ln: 4, r: 8, p: 1 });
  const verified: (string | undefined)[] = [];
  const passwords: Passwords = {
    ...cheap,
    verify(password, hash) {
      verified.push(hash);
      return cheap.verify(password, hash);
    },
  };
  const publicUrl = 'http://127.0.0.1:1';
  return {
    users: createUsers({ db, mails, passwords, attempts, secondFactors, publicUrl }),
    attempts,
    secondFactors,
    sessions,
    smtp,
    verified,
    mails,
    async subjects() {
      await mails.idle();
      return smtp.mails.map((mail) => headerOf(mail, 'subject')[0]);
    },
    async mailedToken(count) {
      await mails.idle();
      if (smtp.mails.length !== count) throw new Error(`${smtp.mails.length} mails arrived`);
      return /"token":"([\w-]{43})"/.exec(smtp.mails.at(-1)!.text)![1]!;
    },
    async close() {
      await mails.close();
      mailer.close();
      await smtp.close();
    },
  };
}

/** The fixture of one test. */
export interface UsersTest {
  readonly db: Database;
  readonly opened: TestUsers;
  readonly users: Users;
  readonly sessions: Sessions;
  /** An address that no earlier test has used. */
  readonly email: string;
}

export const TEST_SIGN_UP = {
  password: 'correct horse battery',
  accountName: 'Desk 4',
  address: '192.0.2.1',
};

/** Sets up a database for a test file, and users and an address for each test. */
export function useTestUsers() {
  let namespace: DatabaseNamespace;
  let db: Database;
  let now: UsersTest;
  let emails = 0;
  beforeAll(async () => {
    namespace = await createDatabaseNamespace();
    db = openTestDatabase(namespace);
  });
  afterAll(async () => {
    await db?.destroy();
  });
  beforeEach(async () => {
    const opened = await openTestUsers(db);
    const { users, sessions } = opened;
    emails += 1;
    now = { db, opened, users, sessions, email: `trader${emails}@example.com` };
  });
  afterEach(async () => {
    await now.opened.close();
  });
  const readUser = () =>
    db.selectFrom('users').selectAll().where('email', '=', now.email).executeTakeFirstOrThrow();
  return {
    /** The fixture of the running test. */
    now: (): UsersTest => now,
    readUser,
    readTokens: async () =>
      db
        .selectFrom('mail_tokens')
        .selectAll()
        .where('user_id', '=', (await readUser()).id)
        .execute(),
    /** @returns the kind of the answer */
    async signIn(password: string, address: string = TEST_SIGN_UP.address): Promise<string> {
      return (await now.users.signIn(now.email, password, { address })).kind;
    },
    /** Verifies by a token and the password of the sign-up. @returns the kind of the answer */
    async verify(token: string, password: string = TEST_SIGN_UP.password): Promise<string> {
      const { address } = TEST_SIGN_UP;
      const proof = { sessionUserId: undefined, password, address };
      return (await now.users.verifyEmail(token, proof)).kind;
    },
    /** Sets a password by a mailed token. @returns the kind of the answer */
    async resetPassword(token: string, password: string): Promise<string> {
      const { address } = TEST_SIGN_UP;
      return (await now.users.resetPassword(token, now.email, password, address)).kind;
    },
    /** Ends the life of a mailed token. */
    async expire(token: string): Promise<void> {
      await db
        .updateTable('mail_tokens')
        .set({ expires_at: new Date(Date.now() - 1) })
        .where('hash', '=', hashToken(token))
        .returning('hash')
        .executeTakeFirstOrThrow();
    },
    /** Signs up. @returns the token in the user's first mail */
    async signUp(): Promise<string> {
      const { kind } = await now.users.signUp({ ...TEST_SIGN_UP, email: now.email });
      if (kind !== 'ok') throw new Error(kind);
      return now.opened.mailedToken(1);
    },
  };
}
