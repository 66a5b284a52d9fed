import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { createPasswords, type Passwords } from '../accounts/passwords.ts';
import { createSessions, type Sessions } from '../accounts/sessions.ts';
import { createUsers, type Users } from '../accounts/users.ts';
import { silentLog } from '../log.ts';
import { createMailQueue, type MailQueue } from '../mail/mail-queue.ts';
import { openMailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
import { openTestDatabase } from './accounts.ts';
import { createNamespace, type Namespace } from './namespace.ts';
import { headerOf, openTestSmtp, type TestSmtp } from './smtp.ts';

/** Users whose mails a real SMTP server takes and whose passwords are hashed cheaply. */
export interface TestUsers {
  readonly users: Users;
  readonly sessions: Sessions;
  readonly smtp: TestSmtp;
  /** The hashes that passwords were compared with; undefined = nobody's. */
  readonly verified: (string | undefined)[];
  /** What waits to be mailed. */
  readonly mails: MailQueue;
  /** The subjects of all mails, once all have left. */
  subjects(): Promise<readonly (string | undefined)[]>;
  /** The token in the newest mail, once all have left. @throws unless so many have come */
  mailedToken(count: number): Promise<string>;
  close(): Promise<void>;
}

/** Opens users on a database, with attempts counted from none. */
export async function openTestUsers(db: Database): Promise<TestUsers> {
  const smtp = await openTestSmtp();
  const mailer = openMailer(smtp.config);
  const mails = createMailQueue({ mailer, log: silentLog, retryWaitsMs: [] });
  const sessions = createSessions(db);
  const cheap = createPasswords({ ln: 4, r: 8, p: 1 });
  const verified: (string | undefined)[] = [];
  const passwords: Passwords = {
    hash: cheap.hash,
    verify(password, hash) {
      verified.push(hash);
      return cheap.verify(password, hash);
    },
  };
  const publicUrl = 'http://127.0.0.1:1';
  return {
    users: createUsers({ db, mails, passwords, publicUrl }),
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
      if (smtp.mails.length !== count) throw new Error(`${smtp.mails.length} mails have come`);
      return /"token":"([\w-]{43})"/.exec(smtp.mails.at(-1)!.text)![1]!;
    },
    async close() {
      await mails.close();
      mailer.close();
      await smtp.close();
    },
  };
}

/** What a test of users works with. */
export interface UsersTest {
  readonly db: Database;
  readonly opened: TestUsers;
  readonly users: Users;
  readonly sessions: Sessions;
  /** An address that no test before has used. */
  readonly email: string;
}

export const TEST_SIGN_UP = {
  password: 'correct horse battery',
  accountName: 'Desk 4',
  address: '192.0.2.1',
};

/** Gives a test file a database of its own, and each of its tests users and an address. */
export function useTestUsers() {
  let namespace: Namespace;
  let db: Database;
  let now: UsersTest;
  let emails = 0;
  beforeAll(async () => {
    namespace = await createNamespace();
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
    /** Of the test that runs. */
    now: (): UsersTest => now,
    readUser,
    readTokens: async () =>
      db
        .selectFrom('mail_tokens')
        .selectAll()
        .where('user_id', '=', (await readUser()).id)
        .execute(),
    /** Signs up; the mail for it is the first. @returns the token in it */
    async signUp(): Promise<string> {
      const { kind } = await now.users.signUp({ ...TEST_SIGN_UP, email: now.email });
      if (kind !== 'ok') throw new Error(kind);
      return now.opened.mailedToken(1);
    },
  };
}
