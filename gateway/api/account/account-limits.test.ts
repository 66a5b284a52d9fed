import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerTicket } from '../../../domain/support/tickets.ts';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { waitFor } from '../../../testing/wait.ts';
import { UNMETERED_OF_ACCOUNT } from '../limits.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import { type Customer, mailsTo, PASSWORD } from '../testing/customer.ts';

let accounts: AccountApi;
let alice: Customer;

beforeAll(async () => {
  accounts = await openAccountApi();
  alice = await accounts.customer('alice', 'pro');
});

afterAll(() => accounts?.close());

describe('a text chosen by callers', () => {
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

  test('may be in any language; a message may have lines', async () => {
    const name = 'デスク 4 – 東京 👩‍💻';
    const made = await alice.send('POST', '/api/support', {
      subject: name,
      message: `${name}\r\n\tاین کار نمی‌کند\n`,
    });
    expect(made.status).toBe(202);
    const line = await alice.send('POST', '/api/support', { subject: 'a\nb', message: 'c' });
    expect(line.body.errors).toMatchObject([{ pointer: '#/subject' }]);
  });

  test('is checked quickly, however long it is', async () => {
    const answer = await alice.send('POST', '/api/support', {
      subject: 'Help',
      message: `${' '.repeat(9_000)}\0`,
    });
    expect(answer.status).toBe(400);
  });
});

test('a support ticket is accepted at once and mailed soon', async () => {
  const taken = await alice.send('POST', '/api/support', { subject: 'A socket', message: 'Why?' });
  expect(taken.body).toMatchObject({ priority: 2, channel: 'priority' });
  await waitFor('the mail', async () =>
    (await mailsTo(accounts.outbox, 'support@pillole.invalid')).some((mail) =>
      mail.includes(`A socket (${taken.body.ticket})`),
    ),
  );
});

test('a ticket is listed, answered, continued and closed; other accounts do not find it', async () => {
  const { ticket: id } = (
    await alice.send('POST', '/api/support', { subject: 'A bill', message: 'Why?' })
  ).body;
  const before = await alice.send('GET', '/api/support?limit=1');
  expect(before.body.data).toMatchObject([{ id, subject: 'A bill', state: 'open' }]);
  const next = await alice.send('GET', before.body.next);
  expect(next.body.data.map((ticket: { id: string }) => ticket.id)).not.toContain(id);
  const db = openTestDatabase(accounts.namespace);
  await answerTicket(db, { actor: 'operator:test', ticketId: id, message: 'Because.' });
  await db.destroy();
  const to = `/api/support/${id}`;
  expect((await alice.send('GET', to)).body).toMatchObject({
    state: 'answered',
    messages: [
      { author: 'customer', message: 'Why?' },
      { author: 'support', message: 'Because.' },
    ],
  });
  const said = await alice.send('POST', `${to}/messages`, { message: 'Thanks.' });
  expect([said.status, said.body]).toEqual([202, { status: 'accepted' }]);
  expect((await alice.send('GET', to)).body.state).toBe('open');
  expect((await alice.send('PATCH', to, { state: 'closed' })).status).toBe(204);
  expect((await alice.send('PATCH', to, { state: 'answered' })).status).toBe(400);
  expect((await alice.send('GET', to)).body.state).toBe('closed');
  const mallory = await accounts.customer('mallory');
  for (const [method, path, body] of [
    ['GET', to],
    ['PATCH', to, { state: 'closed' }],
    ['POST', `${to}/messages`, { message: 'Hm' }],
  ] as const) {
    expect((await mallory.send(method, path, body)).body.code).toBe('object_not_found');
  }
  expect((await mallory.send('GET', `/api/support?before=${id}`)).body.data).toEqual([]);
});

test('the number of password attempts is limited', {
  timeout: 180_000,
}, async () => {
  const carl = await accounts.customer('carl');
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

test('sign-in reports a closed account only with the right password; a mail reports it too', async () => {
  const dora = await accounts.customer('dora', 'basic');
  expect((await dora.send('DELETE', '/api/account', { password: PASSWORD })).status).toBe(204);
  const again = accounts.stranger('dora');
  expect((await again.signIn('not the password')).status).toBe(401);
  const closed = await again.signIn();
  expect([closed.status, closed.body.code]).toEqual([403, 'account_closed']);
  expect(Date.parse(closed.body.erased_at)).toBeGreaterThan(Date.now() + 29 * 86_400_000);
  expect(closed.body.support).toBe('support@pillole.invalid');
  expect(closed.body.detail).toContain('support@pillole.invalid');
  expect(closed.headers['set-cookie']).toBeUndefined();
  await waitFor('the mail', async () =>
    (await mailsTo(accounts.outbox, dora.email)).some((mail) =>
      mail.includes('Subject: Your account is closed'),
    ),
  );
  const mails = await mailsTo(accounts.outbox, dora.email);
  expect(mails.every((mail) => mail.includes('Reply-To: support@pillole.invalid'))).toBe(true);
});

test('unmetered calls are limited too: a flooding account must wait, then continues', async () => {
  const fred = await accounts.customer('fred');
  // Repeats until refused: on a slow machine, tokens refill in the meantime.
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

test('a flood of invented sessions or tokens is stopped before any look-up', async () => {
  const stranger = accounts.stranger('stranger');
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
  // This many simultaneous requests may also find the database busy.
  await waitFor('all requests to be answered', async () => {
    const calls = Array.from({ length: 100 }, () => [call('session'), call('token')]);
    await Promise.all(calls.flat());
    const missing = all.filter((code) => !codes.has(code));
    return missing.length === 0 || `${missing}`;
  });
  await waitFor('room', async () => (await alice.send('GET', '/api/session')).status === 200);
});

test('a client that disconnects within its body is not an error', async () => {
  const { port } = new URL(accounts.base);
  for (let client = 0; client < 5; client += 1) {
    const socket = net.connect(Number(port), '127.0.0.1');
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
    socket.write(
      'POST /api/session HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n' +
        'content-length: 100\r\n\r\n{"email":',
    );
    // The answer to another request shows that the head of this one was read.
    await waitFor('room', async () => (await alice.send('GET', '/api/session')).status === 200);
    socket.destroy();
    await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  }
  await waitFor('room', async () => (await alice.send('GET', '/api/session')).status === 200);
  expect(accounts.api.output()).not.toContain('failed unexpectedly');
});
