import { sql } from 'kysely';
import { Secret, TOTP } from 'otpauth';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { ATTEMPT_LIMITS } from '../../../domain/accounts/attempts.ts';
import { RECOVERY_CODES } from '../../../domain/accounts/recovery-codes.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { blockedBehind, holdRows } from '../../../testing/blocked.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import { type Customer, mailsTo, PASSWORD } from '../testing/customer.ts';

let accounts: AccountApi;
/** Address of a second process. */
let elsewhere: string;
let db: Database;

beforeAll(async () => {
  accounts = await openAccountApi();
  elsewhere = await accounts.start({});
  db = openTestDatabase(accounts.namespace);
});

afterAll(async () => {
  await accounts?.close();
  await db?.destroy();
});

interface Owner {
  readonly customer: Customer;
  readonly secret: string;
  readonly recoveryCodes: readonly string[];
  readonly userId: string;
}

/** A customer with a second factor, whose codes have not been used. */
async function withFactor(name: string, tier?: string): Promise<Owner> {
  const customer = await accounts.customer(name, tier);
  const begun = await customer.send('POST', '/api/second-factor', { password: PASSWORD });
  expect([begun.status, begun.headers['cache-control']]).toEqual([201, 'no-store']);
  const { secret, uri } = begun.body;
  expect(uri).toContain(`secret=${secret}`);
  const confirmed = await customer.send('POST', '/api/second-factor/confirm', {
    code: codeOf(secret),
  });
  expect(confirmed.status).toBe(201);
  const { user } = (await customer.send('GET', '/api/session')).body;
  const owner = { customer, secret, recoveryCodes: confirmed.body.recovery_codes, userId: user.id };
  await forgetCodes(owner);
  return owner;
}

/** What an authenticator shows now, or some steps of 30 s from now. */
function codeOf(secret: string, steps = 0): string {
  const timestamp = Date.now() + steps * 30_000;
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp });
}

/** A code that is wrong now. */
function wrongCode(secret: string): string {
  const right = [-2, -1, 0, 1, 2].map((steps) => codeOf(secret, steps));
  return ['000000', '111111', '222222', '333333', '444444', '555555'].find(
    (code) => !right.includes(code),
  )!;
}

/** Lets codes of the present 30 s be used again, so that a test need not wait for the next. */
const forgetCodes = ({ userId }: Pick<Owner, 'userId'>) =>
  db.updateTable('second_factors').set({ last_step: 0 }).where('user_id', '=', userId).execute();

/** Makes all proofs of a user older than 10 minutes. */
const age = ({ userId }: Owner) =>
  db
    .updateTable('sessions')
    .set({ second_factor_at: new Date(Date.now() - 601_000) })
    .where('user_id', '=', userId)
    .execute();

const prove = ({ customer }: Owner, code: string) =>
  customer.send('POST', '/api/session/second-factor', { code });

describe('setting up', () => {
  test('needs a verified address, the password and a code; then all other sign-ins end', async () => {
    const ann = await accounts.customer('ann');
    const other = accounts.stranger('ann', elsewhere);
    await other.signIn();
    const noPassword = await ann.send('POST', '/api/second-factor', {
      password: 'not the password',
    });
    expect([noPassword.status, noPassword.body.code]).toEqual([401, 'sign_in_refused']);
    const none = await ann.send('POST', '/api/second-factor/confirm', { code: '123456' });
    expect([none.status, none.body.code]).toEqual([409, 'state_conflict']);
    const { secret } = (await ann.send('POST', '/api/second-factor', { password: PASSWORD })).body;
    const wrong = await ann.send('POST', '/api/second-factor/confirm', { code: wrongCode(secret) });
    expect([wrong.status, wrong.body.code]).toEqual([401, 'second_factor_refused']);
    // Not in force yet: signing in needs no code.
    expect((await accounts.stranger('ann').signIn()).status).toBe(200);
    const right = await ann.send('POST', '/api/second-factor/confirm', { code: codeOf(secret) });
    expect(right.status).toBe(201);
    expect(new Set(right.body.recovery_codes).size).toBe(RECOVERY_CODES);
    expect((await other.send('GET', '/api/session')).status).toBe(401);
    const { body: session } = await ann.send('GET', '/api/session');
    expect(session.second_factor).toEqual({ enabled: true, fresh: true });
    const { body: state } = await ann.send('GET', '/api/second-factor');
    expect(state).toMatchObject({ enabled: true, recovery_codes_left: RECOVERY_CODES });
    const again = await ann.send('POST', '/api/second-factor', { password: PASSWORD });
    expect(again.body.code).toBe('state_conflict');
    await waitFor('the mail', async () =>
      (await mailsTo(accounts.outbox, ann.email)).some((mail) =>
        mail.includes('Subject: Your second factor is in force'),
      ),
    );
    const rows = await db.selectFrom('second_factors').selectAll().execute();
    const codes = await db.selectFrom('recovery_codes').selectAll().execute();
    const stored = Buffer.concat([...rows.map((r) => r.sealed), ...codes.map((c) => c.hash)]);
    expect(stored.includes(Buffer.from(Secret.fromBase32(secret).bytes))).toBe(false);
    for (const code of right.body.recovery_codes) expect(stored.includes(code)).toBe(false);
    for (const text of [secret, ...right.body.recovery_codes]) {
      expect(accounts.api.output()).not.toContain(text);
    }
  });

  test('is not possible for a stranger who signed up with an address', async () => {
    const mallory = accounts.stranger('victim');
    await mallory.send('POST', '/api/users', { email: mallory.email, password: PASSWORD });
    await mallory.signIn();
    const begun = await mallory.send('POST', '/api/second-factor', { password: PASSWORD });
    expect([begun.status, begun.body.code]).toEqual([403, 'email_unverified']);
  });

  test('also stops a sign-in that began before it, and would end after it', async () => {
    const customer = await accounts.customer('racing');
    await customer.send('POST', '/api/second-factor', { password: PASSWORD });
    const { id } = (await customer.send('GET', '/api/session')).body.user;
    const held = await holdRows(db, sql`SELECT FROM users WHERE id = ${id} FOR NO KEY UPDATE`);
    onTestFinished(held.release);
    const body = { email: customer.email, password: PASSWORD };
    const signingIn = customer.send('POST', '/api/session', body);
    await waitFor('the sign-in to wait', async () => (await blockedBehind(held)) > 0);
    await db
      .updateTable('second_factors')
      .set({ confirmed_at: new Date() })
      .where('user_id', '=', id)
      .execute();
    await held.release();
    const { status, body: refusal } = await signingIn;
    expect([status, refusal.code]).toEqual([401, 'second_factor_required']);
  });

  test('is void if it is not confirmed within 10 minutes', async () => {
    const late = await accounts.customer('late');
    const { secret } = (await late.send('POST', '/api/second-factor', { password: PASSWORD })).body;
    await db
      .updateTable('second_factors')
      .set({ created_at: new Date(Date.now() - 601_000) })
      .where('confirmed_at', 'is', null)
      .execute();
    const confirm = await late.send('POST', '/api/second-factor/confirm', { code: codeOf(secret) });
    expect(confirm.body.code).toBe('state_conflict');
  });
});

describe('signing in', () => {
  test('needs password and code; a code works once, in one of two processes', async () => {
    const owner = await withFactor('bea');
    const { secret } = owner;
    const here = accounts.stranger('bea');
    const there = accounts.stranger('bea', elsewhere);
    const missing = await here.signIn();
    expect([missing.status, missing.body.code]).toEqual([401, 'second_factor_required']);
    expect(missing.headers['set-cookie']).toBeUndefined();
    const wrong = await here.signIn(PASSWORD, wrongCode(secret));
    expect([wrong.status, wrong.body.code]).toEqual([401, 'second_factor_refused']);
    // The code says nothing about the password.
    const guess = await here.signIn('not the password', codeOf(secret));
    expect([guess.status, guess.body.code]).toEqual([401, 'sign_in_refused']);
    for (const steps of [-3, 3]) {
      const old = await here.signIn(PASSWORD, codeOf(secret, steps));
      expect(old.body.code).toBe('second_factor_refused');
    }
    const code = codeOf(secret);
    const both = await Promise.all([here.signIn(PASSWORD, code), there.signIn(PASSWORD, code)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
    const replayed = await here.signIn(PASSWORD, code);
    expect(replayed.body.code).toBe('second_factor_refused');
    // An earlier code is refused too, although its time is within the window.
    const earlier = await here.signIn(PASSWORD, codeOf(secret, -1));
    expect(earlier.body.code).toBe('second_factor_refused');
  });

  test('a recovery code works once, and is mailed', async () => {
    const { recoveryCodes, customer } = await withFactor('cal');
    const [code] = recoveryCodes;
    const here = accounts.stranger('cal');
    const there = accounts.stranger('cal', elsewhere);
    const both = await Promise.all([here.signIn(PASSWORD, code), there.signIn(PASSWORD, code)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
    expect((await here.signIn(PASSWORD, code)).body.code).toBe('second_factor_refused');
    const { body } = await customer.send('GET', '/api/second-factor');
    expect(body.recovery_codes_left).toBe(RECOVERY_CODES - 1);
    await waitFor('the mail', async () =>
      (await mailsTo(accounts.outbox, customer.email)).some((mail) =>
        mail.includes('A recovery code was used: 9 are left'),
      ),
    );
    // Replaced codes are void.
    const renewed = await customer.send('POST', '/api/second-factor/recovery-codes');
    expect(renewed.status).toBe(201);
    expect((await here.signIn(PASSWORD, recoveryCodes[1])).status).toBe(401);
    expect((await here.signIn(PASSWORD, renewed.body.recovery_codes[0])).status).toBe(200);
  });
});

test('codes cannot be guessed over two processes; a recovery code ends the lock-out', async () => {
  const owner = await withFactor('dan');
  const { customer, secret, recoveryCodes } = owner;
  const { max } = ATTEMPT_LIMITS.codeOfUser;
  // The same session at both processes.
  const there = accounts.stranger('dan', elsewhere);
  const wrong = wrongCode(secret);
  const guess = async (index: number) => {
    const guesser = index % 2 === 0 ? customer : there;
    const headers = customer.credentials();
    const to = '/api/session/second-factor';
    return (await guesser.send('POST', to, { code: wrong }, headers)).body.code;
  };
  // A busy database may leave some without an answer; those count too.
  const codes: string[] = [];
  await waitFor('the limit', async () => {
    codes.push(...(await Promise.all(Array.from({ length: max }, (_, index) => guess(index)))));
    return codes.slice(-max).every((code) => code === 'too_many_attempts');
  });
  const checked = codes.filter((code) => code === 'second_factor_refused').length;
  expect(checked).toBeGreaterThan(0);
  expect(checked).toBeLessThanOrEqual(max);
  const right = await prove(owner, codeOf(secret));
  expect([right.status, right.body.code]).toEqual([429, 'too_many_attempts']);
  expect(Number(right.headers['retry-after'])).toBeGreaterThan(0);
  expect((await prove(owner, recoveryCodes[0]!)).status).toBe(200);
  await waitFor('the mail', async () =>
    (await mailsTo(accounts.outbox, customer.email)).some((mail) =>
      mail.includes('Someone with your password or session tries codes'),
    ),
  );
});

describe('a session that has not proved the second factor for 10 minutes', () => {
  /** Everything that a stolen session would be used for. */
  const NEEDS_PROOF = [
    'DELETE /api/account',
    'DELETE /api/manager/members/{id}',
    'DELETE /api/second-factor',
    'PATCH /api/destinations/s3/{id}',
    'PATCH /api/keys/{id}',
    'PATCH /api/manager/authentication',
    'PATCH /api/manager/authentication/keys/{id}',
    'PATCH /api/manager/authentication/schemes/{id}',
    'PATCH /api/manager/members/{id}',
    'PATCH /api/subscription',
    'PATCH /api/webhooks/{id}',
    'POST /api/billing/test/checkouts/{id}',
    'POST /api/destinations/s3',
    'POST /api/destinations/{id}/resume',
    'POST /api/destinations/{id}/test',
    'POST /api/invitations/join',
    'POST /api/keys',
    'POST /api/keys/{id}/rotate',
    'POST /api/manager/authentication/schemes/{id}/trial',
    'POST /api/manager/authentication/signature-schemes',
    'POST /api/manager/authentication/token-schemes',
    'POST /api/manager/invitations',
    'POST /api/manager/invitations/{id}/resend',
    'POST /api/password',
    'POST /api/second-factor/recovery-codes',
    'POST /api/subscription/cancel',
    'POST /api/subscription/checkout',
    'POST /api/subscription/resume',
    'POST /api/webhooks',
    'POST /api/webhooks/{id}/rotate-secret',
    'PUT /api/manager/desks/{name}',
  ];

  test('cannot change keys, secrets, payment or the account; any proof lasts 10 minutes', async () => {
    const owner = await withFactor('eli', 'institutional');
    const { customer, secret } = owner;
    const { body: document } = await customer.send('GET', '/openapi.json');
    const documented = Object.entries<Record<string, object>>(document.paths).flatMap(
      ([path, methods]) =>
        Object.entries(methods)
          .filter(([, operation]) => JSON.stringify(operation).includes('second_factor_stale'))
          .map(([method]) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented).toEqual(expect.arrayContaining(NEEDS_PROOF));
    const made = await customer.send('POST', '/api/keys', { name: 'desk' });
    expect(made.status).toBe(201);
    await age(owner);
    for (const route of documented) {
      const [method, path] = route.split(' ') as [string, string];
      const stale = await customer.send(method, path.replace(/\{\w+\}/, 'aaaaaaaaaaaa'), {});
      expect([route, stale.status, stale.body.code]).toEqual([route, 403, 'second_factor_stale']);
      expect(stale.body.remedy).toContain('POST /api/session/second-factor');
    }
    // A leaked key can be ended at once.
    const { id } = made.body.record;
    expect((await customer.send('DELETE', `/api/keys/${id}`)).status).toBe(200);
    expect((await customer.send('GET', '/api/session')).body.second_factor.fresh).toBe(false);
    expect((await prove(owner, wrongCode(secret))).status).toBe(401);
    expect((await customer.send('POST', '/api/keys', { name: 'desk' })).status).toBe(403);
    const proved = await prove(owner, codeOf(secret));
    expect(proved.body.second_factor).toEqual({ enabled: true, fresh: true });
    expect((await customer.send('POST', '/api/keys', { name: 'desk' })).status).toBe(201);
  });

  test('can be proved again, remove the second factor with the password, and sign in without', async () => {
    const owner = await withFactor('fay');
    const { customer, secret } = owner;
    await age(owner);
    await prove(owner, codeOf(secret));
    const wrong = await customer.send('DELETE', '/api/second-factor', { password: 'not that' });
    expect(wrong.body.code).toBe('sign_in_refused');
    const gone = await customer.send('DELETE', '/api/second-factor', { password: PASSWORD });
    expect(gone.status).toBe(204);
    expect((await accounts.stranger('fay').signIn()).status).toBe(200);
    const left = await db.selectFrom('recovery_codes').select('user_id').execute();
    expect(left.map(({ user_id: user }) => user)).not.toContain(owner.userId);
  });
});
