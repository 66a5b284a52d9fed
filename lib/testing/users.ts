import { createPasswords, type Passwords } from '../accounts/passwords.ts';
import { createSessions, type Sessions } from '../accounts/sessions.ts';
import { createUsers, type Users } from '../accounts/users.ts';
import { silentLog } from '../log.ts';
import { createMailQueue, type MailQueue } from '../mail/mail-queue.ts';
import { openMailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
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
