import { expect, test } from 'vitest';
import {
  accountClosedMail,
  alreadySignedUpMail,
  eventMail,
  resetMail,
  verificationMail,
} from './mails.ts';

const TO = 'trader@example.com';
const URL_OF_US = 'https://api.pillole.example';
const TOKEN = 'a'.repeat(43);
const ENDPOINT = 'whe_k3m9x2p7q4ab';

test.each([
  ['/api/users/verify', '/app/verify', verificationMail, ['token', 'password']],
  ['/api/password/reset/confirm', '/app/reset', resetMail, ['token', 'password']],
] as const)(
  'the mail for %s contains a link and a call ready to paste',
  (path, page, make, fields) => {
    const { to, subject, text } = make(TO, URL_OF_US, TOKEN);
    expect(to).toBe(TO);
    expect(subject).not.toContain(TOKEN);
    const [, url, body] = /curl (\S+) (?:.*\\\n)+.*-d '([^']*)'/.exec(text) ?? [];
    // A longer line makes the mail quoted-printable, which breaks lines inside the token.
    // A mail program joins them; the outbox of a laptop is read as it is.
    const lines = make(TO, 'http://127.0.0.1:8080', TOKEN).text.split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(76);
    // The fragment is sent to no server.
    expect(text.split('\n')).toContain(`${URL_OF_US}${page}#${TOKEN}`);
    expect(url).toBe(`${URL_OF_US}${path}`);
    const sent = JSON.parse(body!);
    expect(Object.keys(sent)).toEqual(fields);
    expect(sent.token).toBe(TOKEN);
  },
);

test('the mail about an existing account says what to do if it was someone else', () => {
  const mail = alreadySignedUpMail(TO, URL_OF_US);
  expect(mail.to).toBe(TO);
  expect(mail.text).toContain(`${URL_OF_US}/app/forgotten`);
});

test('the mail about a closed account says when the account will be erased', () => {
  const mail = accountClosedMail(TO, URL_OF_US, new Date('2026-12-20T01:02:03Z'));
  expect(mail).toMatchObject({ to: TO, subject: 'Your account is closed' });
  expect(mail.text).toContain('2026-12-20 01:02 UTC');
});

test.each([
  ['payment.reminder', { days_left: 1 }, 'Your payment is overdue: access ends in 1 day'],
  ['payment.reminder', { days_left: 6 }, 'Your payment is overdue: access ends in 6 days'],
  ['account.closed', { tier: 'pro', erased_at: 'soon' }, 'Your account is closed'],
  ['account.suspended', { reason: 'operator', detail: 'Why.' }, 'Your account was suspended'],
  ['account.unsuspended', {}, 'Your account has access again'],
  ['account.reopened', { status: 'active' }, 'Your account was reopened'],
])('the mail for %s %j has the subject "%s"', (type, data, subject) => {
  expect(eventMail(TO, URL_OF_US, { type, data }).subject).toBe(subject);
});

test.each([
  ['endpoint.failing', { endpoint: ENDPOINT, percent: 70 }, /failing: 70 %/, ['attempts']],
  [
    'endpoint.disabled',
    { endpoint: ENDPOINT, reason: 'gone' },
    /disabled/,
    ['attempts', 'recover'],
  ],
] as const)('the mail for %s names the paths that help', (type, data, subject, paths) => {
  const mail = eventMail(TO, URL_OF_US, { type, data });
  expect(mail.subject).toMatch(subject);
  for (const path of paths) {
    expect(mail.text).toContain(`${URL_OF_US}/api/webhooks/${ENDPOINT}/${path}`);
  }
});

test.each([
  ['password.changed', { email: TO }, /password was changed/],
  ['key.created', { hint: 'pil_live_…ab12' }, /new key was made/],
  ['webhook.created', { origin: 'https://x.example' }, /new webhook/],
  ['webhook.moved', { origin: 'https://x.example' }, /new URL: https/],
  ['sign_in.new_address', { address: '203.0.113.7' }, /new address: 203/],
  ['second_factor.enabled', {}, /in force/],
  ['second_factor.removed', {}, /removed/],
  ['second_factor.attempts', {}, /tries codes/],
  ['recovery_code.used', { left: 9 }, /9 are left/],
  ['recovery_codes.renewed', {}, /replaced/],
] as const)('the mail for %s says what to do if it was someone else', (type, data, subject) => {
  const mail = eventMail(TO, URL_OF_US, { type, data });
  expect(mail.subject).toMatch(subject);
  expect(mail.text).toContain(`${URL_OF_US}/app/forgotten`);
});

test('the mail about a closed account names no path that needs an open one', () => {
  const { text } = eventMail(TO, URL_OF_US, { type: 'account.closed', data: { tier: null } });
  expect(text).not.toContain(`${URL_OF_US}/api/account`);
  expect(text).toContain('support');
});

test.each([
  ['operator', false],
  ['payment_due', true],
])(
  'the mail about a suspension (%s) says why, whom to write to, and what still works',
  (reason, isDue) => {
    const data = { reason, detail: 'The invoice of May.' };
    const { text } = eventMail(TO, URL_OF_US, { type: 'account.suspended', data });
    expect(text).toContain('  detail: The invoice of May.\n');
    for (const path of ['support', 'account']) expect(text).toContain(`${URL_OF_US}/api/${path}`);
    expect(text).toContain('reply to this mail');
    expect(text.includes('Pay at the billing provider')).toBe(isDue);
  },
);

test.each([
  ['quota.warning', { percent: 80, used: 800, limit: 1_000 }, /80 %/],
  ['payment.failed', { tier: 'pro', days_left: 7 }, /payment failed/i],
  ['subscription.changed', { tier: 'pro', previous_tier: null }, /subscription/i],
  ['something.new', { text: 'a', list: [1, 'b'] }, /something\.new/],
])('the mail for %s contains all fields of the event', (type, data, subject) => {
  const mail = eventMail(TO, URL_OF_US, { type, data });
  expect(mail).toMatchObject({ to: TO, subject: expect.stringMatching(subject) });
  expect(mail.subject).not.toMatch(/[\r\n]|undefined/);
  for (const [name, value] of Object.entries(data)) {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    expect(mail.text).toContain(`\n  ${name}: ${text}\n`);
  }
});
