import type { Mail } from '../mail/mailer.ts';

/** The texts of all mails: what happened, and what to do. */
export function verificationMail(to: string, publicUrl: string, token: string): Mail {
  return {
    to,
    subject: 'Verify your e-mail address',
    text: `Somebody, we hope you, signed up at ${publicUrl} with this address.

To verify it, send this token within 24 hours:

  curl ${publicUrl}/api/users/verify -H 'Content-Type: application/json' \\
    -d '{"token":"${token}"}'

If it was not you, do not send it. Until somebody does, nothing can be bought and no key made with
this address; to have the account yourself, ask for a new password: POST ${publicUrl}/api/password/reset.
`,
  };
}

export function alreadySignedUpMail(to: string, publicUrl: string): Mail {
  return {
    to,
    subject: 'You have an account already',
    text: `Somebody, perhaps you, tried to sign up at ${publicUrl} with this address. There is an
account with it already; nothing has changed.

Sign in with your password, or ask for a new one: POST ${publicUrl}/api/password/reset.
`,
  };
}

/** To whoever signs up with the address of a closed account, or wants a new password for it. */
export function accountClosedMail(to: string, publicUrl: string, erasedAt: Date): Mail {
  return {
    to,
    subject: 'Your account is closed',
    text: `Somebody, perhaps you, asked ${publicUrl} for an account or a password for this address.
There is an account with it that its owner has closed: nobody can sign in to it, and its data is
erased after ${minuteOf(erasedAt)}. After that you can sign up again with this address.

If you want the account back before, answer to our support by mail. If it was not you who asked, you
need do nothing.
`,
  };
}

export function resetMail(to: string, publicUrl: string, token: string): Mail {
  return {
    to,
    subject: 'A new password',
    text: `To set a new password, send this token within 30 minutes:

  curl ${publicUrl}/api/password/reset/confirm -H 'Content-Type: application/json' \\
    -d '{"token":"${token}","password":"<the new one>"}'

All sessions end then, and the address counts as verified. If you did not ask for it, you need do
nothing: the password stays as it is.
`,
  };
}

export function passwordChangedMail(to: string, publicUrl: string): Mail {
  return {
    to,
    subject: 'Your password was changed',
    text: `The password of this address was changed at ${publicUrl}, and all sessions have ended.

If it was you, you need do nothing but sign in again; your keys go on working. If it was not you,
ask for a new one at once: POST ${publicUrl}/api/password/reset. Then sign in, revoke keys that are
not yours (GET ${publicUrl}/api/keys), and see what was done at GET ${publicUrl}/api/account/audit.
`,
  };
}

/** An event of the account, e.g. `quota.warning`, as a mail. */
export function eventMail(
  to: string,
  publicUrl: string,
  event: { readonly type: string; readonly data: Readonly<Record<string, unknown>> },
): Mail {
  const { type, data } = event;
  const subject = subjectOf(type, data);
  const lines = Object.entries(data).map(([name, value]) => `  ${name}: ${told(value)}`);
  const footer = footerOf(type, data, publicUrl);
  return { to, subject, text: [`${subject}.`, lines.join('\n'), `${footer}\n`].join('\n\n') };
}

/** What to do. */
function footerOf(
  type: string,
  data: Readonly<Record<string, unknown>>,
  publicUrl: string,
): string {
  const endpoint = `${publicUrl}/api/webhooks/${data.endpoint}`;
  switch (type) {
    case 'account.closed':
      return (
        'All keys and sessions have ended, and nothing is renewed any more. If it was not you, or you\n' +
        'want the account back before it is erased, write to our support at once.'
      );
    case 'endpoint.failing':
      return (
        'Repair the receiver: one message that it answers with 2xx ends this. What it answered:\n' +
        `GET ${endpoint}/attempts.`
      );
    case 'endpoint.disabled':
      return (
        `Nothing is posted to it any more. Repair the receiver; see GET ${endpoint}/attempts for\n` +
        `what it answered. Then enable it: PATCH ${endpoint} '{"status":"enabled"}'. When it has\n` +
        `answered the test message, have what was missed posted: POST ${endpoint}/recover.`
      );
    default:
      return `Your plan and your use: GET ${publicUrl}/api/account, GET ${publicUrl}/api/usage.`;
  }
}

function subjectOf(type: string, data: Readonly<Record<string, unknown>>): string {
  if (type === 'quota.warning') return `${data.percent} % of today's calls are used`;
  if (type === 'payment.failed') return 'A payment failed: your access ends if it stays unpaid';
  if (type === 'payment.reminder') {
    return `Your payment is due: access ends in ${counted(data.days_left, 'day')}`;
  }
  if (type === 'key.expiring') return `Your key ${data.hint} ends soon: rotate it`;
  if (type === 'subscription.changed') return 'Your subscription has changed';
  if (type === 'account.closed') return 'Your account is closed';
  if (type === 'endpoint.failing') {
    return `Your webhook endpoint fails: ${data.percent} % of the time until it is disabled is over`;
  }
  if (type === 'endpoint.disabled') return 'Your webhook endpoint was disabled';
  return `pillole: ${type}`;
}

function counted(count: unknown, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function told(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** UTC, to the minute. */
function minuteOf(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
