import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { request } from 'undici';
import { insertUser } from '../../../domain/accounts/new-user.ts';
import { createPasswords } from '../../../domain/accounts/passwords.ts';
import { lockUser } from '../../../domain/accounts/sessions.ts';
import { setVerified } from '../../../domain/accounts/sign-up.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { inTurn } from '../../../lib/postgres/in-turn.ts';
import { waitFor } from '../../../testing/wait.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  // biome-ignore lint/suspicious/noExplicitAny: answers of all routes; tests look at members
  readonly body: any;
}

/** A customer in a browser, which keeps the cookie and repeats the CSRF token. */
export interface Customer {
  readonly email: string;
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  /** Signs up by the API, with the link of the mail, and signs in. */
  signUp(): Promise<void>;
  signIn(password?: string, code?: string): Promise<Answer>;
  subscribe(tier: string): Promise<Answer>;
  /** The headers that a browser would send: the cookie and the CSRF token. */
  credentials(): Record<string, string>;
}

export const PASSWORD = 'correct horse battery';

/** A hash carries its cost: one of full cost takes 0.3 s of CPU time at each check. */
const cheapPasswords = createPasswords({ ln: 4, r: 8, p: 1 });

/**
 * Makes a customer a user with a verified address, and signs in. The rows are those of a sign-up,
 * without its three hashes, its mail and its limits, which have tests of their own.
 */
export async function enroll(db: Database, { email, signIn }: Customer): Promise<void> {
  const hash = await cheapPasswords.hash(PASSWORD);
  const address = '127.0.0.1';
  const user = await insertUser(db, { email, hash, accountName: email, address });
  if (user === undefined) throw new Error(`${email} has signed up before.`);
  await inTurn(db, user.id, async (tx) => setVerified(tx, (await lockUser(tx, user.id))!, address));
  await settled(`the sign-in of ${email}`, () => signIn());
}

const JSON_TYPE = /^application\/(?:problem\+)?json\b/;

/** @param outbox folder to which the process writes mails */
export function createCustomer(base: string, outbox: string, name: string): Customer {
  const email = `${name}@example.com`;
  let cookie: string | undefined;
  let csrf: string | undefined;
  const send: Customer['send'] = async (method, to, body, more = {}) => {
    const headers: Record<string, string> = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(cookie === undefined ? {} : { cookie }),
      ...(csrf === undefined || method === 'GET' ? {} : { 'x-csrf-token': csrf }),
      ...more,
    };
    const payload = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await request(`${base}${to}`, { method, headers, ...payload } as never);
    const text = await answer.body.text();
    return {
      status: answer.statusCode,
      headers: answer.headers,
      // Other documents, such as an export, are for tests of their own.
      body: JSON_TYPE.test(String(answer.headers['content-type'])) ? JSON.parse(text) : null,
    };
  };
  const signIn = async (password = PASSWORD, code?: string) => {
    const answer = await send('POST', '/api/session', { email, password, code });
    if (answer.status === 200) {
      cookie = String(answer.headers['set-cookie']).split(';', 1)[0];
      csrf = answer.body.csrf_token;
    }
    return answer;
  };
  return {
    email,
    send,
    signIn,
    async signUp() {
      // On a busy machine the database may not answer in time: 503, and no mail would come.
      await settled(`the sign-up of ${email}`, () =>
        send('POST', '/api/users', { email, password: PASSWORD }),
      );
      const token = await tokenFor(outbox, email, 'Verify');
      await settled(`the verification of ${email}`, () =>
        send('POST', '/api/users/verify', { token, password: PASSWORD }),
      );
      await settled(`the sign-in of ${email}`, () => signIn());
    },
    async subscribe(tier) {
      const begun = await settled(`the checkout of ${tier}`, () =>
        send('POST', '/api/subscription/checkout', { tier }),
      );
      const to = `/api/billing/test/checkouts/${begun.body.checkout_id}`;
      await settled(`the payment of ${tier}`, () => send('POST', to, { outcome: 'paid' }));
      // A change of the tier takes effect within a second, not at once.
      await waitFor(`${tier} to take effect for ${email}`, async () => {
        const { status, body } = await send('GET', '/api/account');
        return body.tier === tier || `${status} ${body.tier}`;
      });
      return begun;
    },
    credentials: () => ({ cookie: cookie ?? '', 'x-csrf-token': csrf ?? '' }),
  };
}

/** Repeats a request that the database, on a busy machine, did not answer in time. */
function settled(what: string, send: () => Promise<Answer>): Promise<Answer> {
  return waitFor(what, async () => {
    const answer = await send();
    return answer.status < 500 ? answer : `${answer.status} ${answer.body?.code}`;
  });
}

/** All mails of an address, oldest first. */
export async function mailsTo(outbox: string, email: string): Promise<string[]> {
  const names = await readdir(outbox).catch(() => []);
  const files = names.filter((name) => name.endsWith('.eml')).sort();
  const mails = await Promise.all(files.map((name) => readFile(path.join(outbox, name), 'utf8')));
  return mails.filter((mail) => mail.includes(`To: ${email}`));
}

/** Sign-ups of several test files at once hash passwords and send mails late on two cores. */
const MAIL_MS = 150_000;

/** Waits for a mail with this start of the subject. @returns the token in the newest one */
export async function tokenFor(outbox: string, email: string, subject: string): Promise<string> {
  return (
    await waitFor(
      `a mail to ${email}: ${subject}`,
      async () => {
        const mails = await mailsTo(outbox, email);
        const mail = mails.findLast((text) => text.includes(`Subject: ${subject}`));
        // Quoted-printable: "=" is "=3D", and "=" at the end of a line continues it.
        const text = mail?.replaceAll('=\r\n', '').replaceAll('=3D', '=');
        const token = text === undefined ? null : /"token":"([\w-]{43})"/.exec(text);
        return token !== null && { token: token[1]! };
      },
      MAIL_MS,
    )
  ).token;
}
