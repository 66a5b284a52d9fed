import { expect, test } from 'vitest';
import {
  accountClosedMail,
  alreadySignedUpMail,
  eventMail,
  passwordChangedMail,
  resetMail,
  verificationMail,
} from './mails.ts';

const TO = 'trader@example.com';
const URL_OF_US = 'https://api.pillole.example';
const TOKEN = 'a'.repeat(43);

test.each([
  ['/api/users/verify', verificationMail, ['token']],
  ['/api/password/reset/confirm', resetMail, ['token', 'password']],
] as const)('the mail for %s holds a call that can be pasted', (path, make, fields) => {
  const { to, subject, text } = make(TO, URL_OF_US, TOKEN);
  expect(to).toBe(TO);
  expect(subject).not.toContain(TOKEN);
  const [, url, body] = /curl (\S+) .*\\\n.*-d '(.*)'/.exec(text) ?? [];
  expect(url).toBe(`${URL_OF_US}${path}`);
  const sent = JSON.parse(body!);
  expect(Object.keys(sent)).toEqual(fields);
  expect(sent.token).toBe(TOKEN);
});

test.each([
  ['an account exists', alreadySignedUpMail(TO, URL_OF_US)],
  ['a password was changed', passwordChangedMail(TO, URL_OF_US)],
])('the mail that %s says what to do if it was somebody else', (_, mail) => {
  expect(mail.to).toBe(TO);
  expect(mail.text).toContain(`POST ${URL_OF_US}/api/password/reset`);
});

test('the mail of a closed account says until when it can be had back', () => {
  const mail = accountClosedMail(TO, URL_OF_US, new Date('2026-12-20T01:02:03Z'));
  expect(mail).toMatchObject({ to: TO, subject: 'Your account is closed' });
  expect(mail.text).toContain('2026-12-20 01:02 UTC');
});

test.each([
  ['payment.reminder', { days_left: 1 }, 'Your payment is due: access ends in 1 day'],
  ['payment.reminder', { days_left: 6 }, 'Your payment is due: access ends in 6 days'],
  ['account.closed', { tier: 'pro', erased_at: 'soon' }, 'Your account is closed'],
])('%s %j is told as "%s"', (type, data, subject) => {
  expect(eventMail(TO, URL_OF_US, { type, data }).subject).toBe(subject);
});

test.each([
  ['endpoint.failing', { endpoint: 'whe_k3m9x2p7q4ab', percent: 70 }, /fails: 70 %/, ['attempts']],
  [
    ...(['endpoint.disabled', { endpoint: 'whe_k3m9x2p7q4ab', reason: 'gone' }] as const),
    ...([/was disabled/, ['attempts', 'recover']] as const),
  ],
] as const)('the mail of %s leads to what helps', (type, data, subject, paths) => {
  const mail = eventMail(TO, URL_OF_US, { type, data });
  expect(mail.subject).toMatch(subject);
  for (const path of paths) {
    expect(mail.text).toContain(`${URL_OF_US}/api/webhooks/whe_k3m9x2p7q4ab/${path}`);
  }
});

test('no mail of a closed account leads to what it cannot do any more', () => {
  const { text } = eventMail(TO, URL_OF_US, { type: 'account.closed', data: { tier: null } });
  expect(text).not.toContain(`${URL_OF_US}/api/account`);
  expect(text).toContain('support');
});

test.each([
  ['quota.warning', { percent: 80, used: 800, limit: 1_000 }, /80 %/],
  ['payment.failed', { tier: 'pro', days_left: 7 }, /payment failed/i],
  ['subscription.changed', { tier: 'pro', previous_tier: null }, /subscription/i],
  ['something.new', { text: 'a', list: [1, 'b'] }, /something\.new/],
])('the event %s is told with all that it holds', (type, data, subject) => {
  const mail = eventMail(TO, URL_OF_US, { type, data });
  expect(mail).toMatchObject({ to: TO, subject: expect.stringMatching(subject) });
  expect(mail.subject).not.toMatch(/[\r\n]|undefined/);
  for (const [name, value] of Object.entries(data)) {
    const told = typeof value === 'string' ? value : JSON.stringify(value);
    expect(mail.text).toContain(`\n  ${name}: ${told}\n`);
  }
});
