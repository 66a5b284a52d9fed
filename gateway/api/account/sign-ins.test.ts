import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { USER_AGENT_CHARS_MAX } from '../../../domain/accounts/visitor.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import { mailsTo, PASSWORD, tokenFor } from '../testing/customer.ts';

let accounts: AccountApi;

beforeAll(async () => {
  accounts = await openAccountApi({
    TRUSTED_PROXIES: '127.0.0.1/32',
    PUBLIC_URL: 'https://api.test',
    BILLING: 'test',
  });
});

afterAll(() => accounts?.close());

describe('an account that a stranger opened with the address of someone else', () => {
  const STRANGERS = 'battery of the stranger';
  const OWNERS = 'battery of the owner';

  async function hijack(name: string) {
    const stranger = accounts.stranger(name);
    const { email } = stranger;
    const wanted = { email, password: STRANGERS, account_name: 'Bank of Strangers' };
    await stranger.send('POST', '/api/users', wanted);
    expect((await stranger.signIn(STRANGERS)).status).toBe(200);
    const owner = accounts.stranger(name);
    const token = await tokenFor(accounts.outbox, email, 'Verify');
    return { stranger, owner, email, token };
  }

  test('is not verified by the owner’s token, with any proof that the owner has', async () => {
    const { stranger, owner, token } = await hijack('mia');
    for (const proof of [{}, { password: OWNERS }]) {
      const answer = await owner.send('POST', '/api/users/verify', { token, ...proof });
      expect([answer.status, answer.body.code]).toEqual([403, 'verification_unproven']);
      expect(answer.body.remedy).toContain('/api/password/reset');
    }
    // A session of another account is no proof either, nor is a cookie without its CSRF token.
    const other = await accounts.customer('ned');
    const byOther = await other.send('POST', '/api/users/verify', { token });
    expect(byOther.body.code).toBe('verification_unproven');
    const { cookie } = stranger.credentials();
    const forged = await owner.send('POST', '/api/users/verify', { token }, { cookie: cookie! });
    expect(forged.body.code).toBe('verification_unproven');
    const { body } = await stranger.send('GET', '/api/session');
    expect(body.user.email_verified).toBe(false);
  });

  test('passes to the owner by a new password; nothing of the stranger stays', async () => {
    const { stranger, owner, email, token } = await hijack('oda');
    await owner.send('POST', '/api/password/reset', { email });
    const reset = await tokenFor(accounts.outbox, email, 'Reset your password');
    const confirm = { token: reset, password: OWNERS };
    expect((await owner.send('POST', '/api/password/reset/confirm', confirm)).status).toBe(200);
    expect((await stranger.send('GET', '/api/session')).status).toBe(401);
    expect((await accounts.stranger('oda').signIn(STRANGERS)).status).toBe(401);
    const late = await stranger.send('POST', '/api/users/verify', { token, password: STRANGERS });
    expect(late.body.code).toBe('token_invalid');
    const signedIn = await owner.signIn(OWNERS);
    expect(signedIn.body.user.email_verified).toBe(true);
    expect((await owner.send('GET', '/api/account')).body.name).toBe(email);
    expect((await owner.send('GET', '/api/sessions')).body.data).toHaveLength(1);
  });

  test('whoever signed up verifies with the session alone', async () => {
    const pam = accounts.stranger('pam');
    await pam.send('POST', '/api/users', { email: pam.email, password: PASSWORD });
    await pam.signIn();
    const token = await tokenFor(accounts.outbox, pam.email, 'Verify');
    expect((await pam.send('POST', '/api/users/verify', { token })).status).toBe(200);
  });
});

test('a common password is refused, before and after the account exists', async () => {
  const quy = accounts.stranger('quy');
  for (const password of ['P@ssw0rd2024', 'qwertyuiop123', 'quy@example.com1']) {
    const answer = await quy.send('POST', '/api/users', { email: quy.email, password });
    expect([password, answer.status]).toEqual([password, 400]);
    expect(answer.body.errors).toMatchObject([{ pointer: '#/password', code: 'password_weak' }]);
  }
  await quy.signUp();
  const change = { current: PASSWORD, password: 'iloveyou1234' };
  const changed = await quy.send('POST', '/api/password', change);
  expect(changed.body.errors).toMatchObject([{ pointer: '#/password', code: 'password_weak' }]);
});

describe('the list of sign-ins', () => {
  test('shows address and program; one or all others can be ended', async () => {
    const rob = await accounts.customer('rob');
    const programs = ['Mozilla/5.0 (X11; Linux x86_64)', `evil\tdé${'x'.repeat(300)}`];
    const others = programs.map(() => accounts.stranger('rob'));
    for (const [index, other] of others.entries()) {
      const headers = {
        'user-agent': Buffer.from(programs[index]!).toString('latin1'),
        'x-forwarded-for': `203.0.113.${index}`,
        'content-type': 'application/json',
      };
      const signedIn = await request(`${accounts.base}/api/session`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ email: other.email, password: PASSWORD }),
      });
      expect(signedIn.statusCode).toBe(200);
      await signedIn.body.dump();
    }
    const { body: list } = await rob.send('GET', '/api/sessions');
    expect(list.data).toHaveLength(3);
    expect(list.data[2]).toMatchObject({ current: true, address: '127.0.0.1' });
    expect(list.data[1]).toMatchObject({
      current: false,
      address: '203.0.113.0',
      user_agent: programs[0],
    });
    expect(list.data[0].user_agent).toHaveLength(USER_AGENT_CHARS_MAX);
    expect(list.data[0].user_agent).toMatch(/^[ -~]*$/);
    const ended = await rob.send('DELETE', `/api/sessions/${list.data[0].id}`);
    expect(ended.status).toBe(204);
    expect((await rob.send('DELETE', `/api/sessions/${list.data[0].id}`)).status).toBe(404);
    const rest = await rob.send('DELETE', '/api/sessions');
    expect([rest.status, rest.body]).toEqual([200, { ended: 1 }]);
    const { body: left } = await rob.send('GET', '/api/sessions');
    expect(left.data).toMatchObject([{ current: true }]);
  });

  test('does not reach into another account', async () => {
    const [sam, tia] = [await accounts.customer('sam'), await accounts.customer('tia')];
    const { body } = await sam.send('GET', '/api/sessions');
    const { id } = body.data[0];
    const theirs = await tia.send('DELETE', `/api/sessions/${id}`);
    expect([theirs.status, theirs.body.code]).toEqual([404, 'object_not_found']);
    expect((await tia.send('DELETE', '/api/sessions')).body).toEqual({ ended: 0 });
    expect((await sam.send('GET', '/api/session')).status).toBe(200);
    const ids = (await tia.send('GET', '/api/sessions')).body.data.map(
      (one: { id: string }) => one.id,
    );
    expect(ids).not.toContain(id);
  });
});

describe('the owner gets a mail about', () => {
  const has = (email: string, text: string) =>
    waitFor(`a mail: ${text}`, async () =>
      (await mailsTo(accounts.outbox, email)).some((mail) => mail.includes(`Subject: ${text}`)),
    );

  test('a sign-in from a network that was not known, once', async () => {
    const uma = await accounts.customer('uma');
    const away = (address: string) => {
      const body = { email: uma.email, password: PASSWORD };
      return uma.send('POST', '/api/session', body, { 'x-forwarded-for': address });
    };
    for (const address of [
      '127.0.0.1',
      '198.51.100.9',
      '198.51.100.9',
      '2001:db8::1',
      '2001:db8::2',
    ]) {
      expect((await away(address)).status).toBe(200);
    }
    await has(uma.email, 'A sign-in from a new address: 2001:db8::1');
    const mails = await mailsTo(accounts.outbox, uma.email);
    const subjects = mails.flatMap((mail) => /Subject: (A sign-in.*)/.exec(mail)?.[1] ?? []);
    expect(subjects.map((subject) => subject.trim())).toEqual([
      'A sign-in from a new address: 198.51.100.9',
      'A sign-in from a new address: 2001:db8::1',
    ]);
  });

  test('a new key, a new tier, a new webhook, a new password', async () => {
    const vic = await accounts.customer('vic', 'pro');
    const { body } = await vic.send('POST', '/api/keys', { name: 'desk' });
    await has(vic.email, 'A new key was made');
    const all = (await mailsTo(accounts.outbox, vic.email)).join('\n');
    expect(all).not.toContain(body.key);
    await has(vic.email, 'Your subscription has changed');
    const hook = { url: 'https://203.0.113.9/hook', event_types: ['pill.published'] };
    await vic.send('POST', '/api/webhooks', hook);
    await vic.send('POST', '/api/password', { current: PASSWORD, password: 'incorrect horse' });
    await has(vic.email, 'Your password was changed');
  });
});
