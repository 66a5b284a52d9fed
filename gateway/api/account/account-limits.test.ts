import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace } from '../../../lib/testing/namespace.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { UNMETERED_OF_ACCOUNT } from '../limits.ts';
import { type Customer, createCustomer, mailsTo, PASSWORD } from '../testing/customer.ts';

let outbox: string;
let base: string;
let api: TestProcess;
let alice: Customer;

beforeAll(async () => {
  const namespace = await createNamespace();
  outbox = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  api = await startProcess('gateway/api/main.js', [], {
    ...{ ...namespace.env, API_PORT: String(port), PUBLIC_URL: base, MAIL_OUTBOX: outbox },
  });
  await api.ready();
  alice = createCustomer(base, outbox, 'alice');
  await alice.signUp();
  await alice.subscribe('pro');
});

afterAll(async () => {
  await api?.stop();
  await rm(outbox, { recursive: true, force: true });
});

describe('a text that callers choose', () => {
  const FIELDS: readonly (readonly [string, string, (text: string) => object])[] = [
    ['/api/keys', 'name', (name) => ({ name })],
    ['/api/support', 'subject', (subject) => ({ subject, message: 'Why?' })],
    ['/api/support', 'message', (message) => ({ subject: 'Help', message })],
    [
      '/api/users',
      'account_name',
      (account_name) => ({ email: 'eve@example.com', password: PASSWORD, account_name }),
    ],
  ];
  const UNSAFE = [
    'a\0b',
    'a\u0007b',
    '\ud800',
    'a\udc00b',
    '\u0085',
    'a\u202eb',
    'a\u2028b',
    ' ',
    '',
  ];
  const CASES = FIELDS.flatMap(([to, field, body]) =>
    UNSAFE.map((text) => [to, field, text, body(text)] as const),
  );

  test.each(CASES)('%s %s %j is refused', async (to, field, _, body) => {
    const answer = await alice.send('POST', to, body);
    expect([answer.status, answer.body.code]).toEqual([400, 'body_invalid']);
    expect(answer.body.errors.map((fault: { pointer: string }) => fault.pointer)).toEqual([
      `#/${field}`,
    ]);
  });

  test('may be of any language; a message has lines', async () => {
    const name = 'デスク 4 – 東京 👩‍💻';
    const made = await alice.send('POST', '/api/support', {
      subject: name,
      message: `${name}\r\n\tاین کار نمی‌کند\n`,
    });
    expect(made.status).toBe(202);
    const line = await alice.send('POST', '/api/support', { subject: 'a\nb', message: 'c' });
    expect(line.body.errors).toMatchObject([{ pointer: '#/subject' }]);
  });

  test('is looked at in no time, however long it is', async () => {
    const answer = await alice.send('POST', '/api/support', {
      subject: 'Help',
      message: `${' '.repeat(9_000)}\0`,
    });
    expect(answer.status).toBe(400);
  });
});

test('a ticket is answered at once and mailed soon', async () => {
  const taken = await alice.send('POST', '/api/support', { subject: 'A socket', message: 'Why?' });
  expect(taken.body).toMatchObject({ priority: 2, channel: 'priority' });
  await waitFor('the mail', async () =>
    (await mailsTo(outbox, 'support@pillole.invalid')).some((mail) =>
      mail.includes(`A socket (${taken.body.ticket})`),
    ),
  );
});

test('the password is asked for again a few times, not for ever', {
  timeout: 180_000,
}, async () => {
  const carl = createCustomer(base, outbox, 'carl');
  await carl.signUp();
  const statuses = [];
  for (let wrong = 0; wrong < 11; wrong += 1) {
    statuses.push((await carl.send('DELETE', '/api/account', { password: 'wrong' })).status);
  }
  expect(statuses.slice(0, 10).every((status) => status === 401)).toBe(true);
  const limited = await carl.send('DELETE', '/api/account', { password: PASSWORD });
  expect([statuses[10], limited.status]).toEqual([429, 429]);
  expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
  expect((await carl.send('GET', '/api/session')).status).toBe(200);
});

test('a closed account is told at the sign-in, with the right password alone, and by mail', async () => {
  const dora = createCustomer(base, outbox, 'dora');
  await dora.signUp();
  await dora.subscribe('basic');
  expect((await dora.send('DELETE', '/api/account', { password: PASSWORD })).status).toBe(204);
  const again = createCustomer(base, outbox, 'dora');
  expect((await again.signIn('not the password')).status).toBe(401);
  const closed = await again.signIn();
  expect([closed.status, closed.body.code]).toEqual([403, 'account_closed']);
  expect(Date.parse(closed.body.erased_at)).toBeGreaterThan(Date.now() + 29 * 86_400_000);
  expect(closed.headers['set-cookie']).toBeUndefined();
  await waitFor('the mail', async () =>
    (await mailsTo(outbox, dora.email)).some((mail) =>
      mail.includes('Subject: Your account is closed'),
    ),
  );
});

test('calls that cost nothing are no open flood: an account is told to wait, and goes on', async () => {
  const fred = createCustomer(base, outbox, 'fred');
  await fred.signUp();
  // As many as it takes: on a slow machine the tokens come back meanwhile.
  const refused = await waitFor('a refusal', async () => {
    const answers = await Promise.all(
      Array.from({ length: UNMETERED_OF_ACCOUNT.burst * 3 }, () => fred.send('GET', '/api/keys')),
    );
    const passed = answers.filter(({ status }) => status === 200);
    expect(passed.length).toBeGreaterThan(0);
    const limited = answers.filter(({ status }) => status === 429);
    return limited.length > 0 && limited;
  });
  expect(refused[0]!.body).toMatchObject({ code: 'rate_limited', scope: 'account' });
  expect(refused[0]!.headers['retry-after']).toBe(String(refused[0]!.body.retry_after_s));
  expect((await alice.send('GET', '/api/keys')).status).toBe(200);
  await waitFor('room', async () => (await fred.send('GET', '/api/keys')).status === 200);
});

test('a flood of made-up sessions or tokens is stopped before anybody is looked up', async () => {
  const stranger = createCustomer(base, outbox, 'stranger');
  const cookie = { cookie: 'pillole_session=made-up' };
  const token = 'a'.repeat(43);
  const codes = new Set<string>();
  const call = async (to: 'session' | 'token') => {
    const { body } = await (to === 'session'
      ? stranger.send('GET', '/api/session', undefined, cookie)
      : stranger.send('POST', '/api/users/verify', { token }));
    codes.add(`${to}: ${body.code} ${body.scope ?? ''}`.trim());
  };
  const all = [
    'session: rate_limited address',
    'session: session_required',
    'token: rate_limited address',
    'token: token_invalid',
  ];
  // So many at once may also find the database busy.
  await waitFor('all answers', async () => {
    const calls = Array.from({ length: 100 }, () => [call('session'), call('token')]);
    await Promise.all(calls.flat());
    const missing = all.filter((code) => !codes.has(code));
    return missing.length === 0 || `${missing}`;
  });
  await waitFor('room', async () => (await alice.send('GET', '/api/session')).status === 200);
});

test('a client that leaves amid its body is no error of ours', async () => {
  const { port } = new URL(base);
  for (let client = 0; client < 5; client += 1) {
    const socket = net.connect(Number(port), '127.0.0.1');
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    socket.write(
      'POST /api/session HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n' +
        'content-length: 100\r\n\r\n{"email":',
    );
    // The answer to another request shows that the head of this one was read.
    await waitFor('room', async () => (await alice.send('GET', '/api/session')).status === 200);
    socket.destroy();
    await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  }
  await waitFor('room', async () => (await alice.send('GET', '/api/session')).status === 200);
  expect(api.output()).not.toContain('failed unexpectedly');
});
