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

If it was not you, do nothing: the account cannot be used.
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

export function resetMail(to: string, publicUrl: string, token: string): Mail {
  return {
    to,
    subject: 'A new password',
    text: `To set a new password, send this token within 30 minutes:

  curl ${publicUrl}/api/password/reset/confirm -H 'Content-Type: application/json' \\
    -d '{"token":"${token}","password":"<the new one>"}'

All sessions end then. If you did not ask for it, do nothing: the password stays as it is.
`,
  };
}

export function passwordChangedMail(to: string, publicUrl: string): Mail {
  return {
    to,
    subject: 'Your password was changed',
    text: `The password of this address was changed at ${publicUrl}, and all sessions have ended.

If it was not you, ask for a new one at once: POST ${publicUrl}/api/password/reset, and look at your
keys and at GET ${publicUrl}/api/account/audit.
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
  const lines = Object.entries(data).map(([name, value]) => `  ${name}: ${told(value)}`);
  return {
    to,
    subject: subjectOf(type, data),
    text: `${subjectOf(type, data)}.

${lines.join('\n')}

Your plan and your use: GET ${publicUrl}/api/account, GET ${publicUrl}/api/usage.
`,
  };
}

function subjectOf(type: string, data: Readonly<Record<string, unknown>>): string {
  if (type === 'quota.warning') return `${data.percent} % of today's calls are used`;
  if (type === 'payment.failed') return 'A payment failed: your access ends if it stays unpaid';
  if (type === 'payment.reminder')
    return `Your payment is due: access ends in ${data.days_left} days`;
  if (type === 'key.expiring') return `Your key ${data.hint} ends soon: rotate it`;
  if (type === 'subscription.changed') return 'Your subscription has changed';
  return `pillole: ${type}`;
}

function told(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
