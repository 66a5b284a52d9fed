import type { Mail } from '../../lib/mail/mailer.ts';

/** Asks the owner of a new address to verify it. */
export function verificationMail(to: string, publicUrl: string, token: string): Mail {
  return {
    to,
    subject: 'Verify your e-mail address',
    text: `Someone, hopefully you, signed up with this address
at ${publicUrl}.

To verify the address, open this link within 24 hours and enter the
password that you chose:

${publicUrl}/app/verify#${token}

A program does the same with:

  curl ${publicUrl}/api/users/verify \\
    -H 'Content-Type: application/json' \\
    -d '{"token":"${token}",
      "password":"<yours>"}'

If it was not you, the token is of no use without that password. Until the
address is verified, the account cannot buy a subscription or create keys.
To take over the account, request a new password:
${publicUrl}/app/forgotten
`,
  };
}

export function alreadySignedUpMail(to: string, publicUrl: string): Mail {
  return {
    to,
    subject: 'You already have an account',
    text: `Someone, perhaps you, tried to sign up at ${publicUrl} with this address. An account with
this address already exists; nothing has changed.

Sign in with your password, or request a new one: ${publicUrl}/app/forgotten
`,
  };
}

/** For a sign-up or a password request with the address of a closed account. */
export function accountClosedMail(to: string, publicUrl: string, erasedAt: Date): Mail {
  return {
    to,
    subject: 'Your account is closed',
    text: `Someone, perhaps you, asked ${publicUrl} for an account or a new password with this address.
The account with this address was closed by its owner. Sign-in is no longer possible, and the data
will be erased after ${minuteOf(erasedAt)}. After that, you can sign up with this address again.

If you want the account back before then, reply to this mail: our support can reopen it. If you did
not send the request, you can ignore this mail.
`,
  };
}

export function resetMail(to: string, publicUrl: string, token: string): Mail {
  return {
    to,
    subject: 'Reset your password',
    text: `To set a new password, open this link within 30 minutes:

${publicUrl}/app/reset#${token}

A program does the same with:

  curl ${publicUrl}/api/password/reset/confirm \\
    -H 'Content-Type: application/json' \\
    -d '{"token":"${token}",
      "password":"<the new one>"}'

This signs you out of all sessions and verifies your address. If you did
not request a new password, ignore this mail: your password stays as it
is.
`,
  };
}

/** Asks someone to become a member of an account. Texts of others are quoted. */
export function invitationMail(
  to: string,
  publicUrl: string,
  {
    token,
    role,
    by,
    of,
  }: {
    readonly token: string;
    readonly role: string;
    /** Address of the member who invites. */
    readonly by: string;
    /** Name of the account. */
    readonly of: string;
  },
): Mail {
  return {
    to,
    subject: 'You are invited to an account',
    text: `${by} invites you to act for the account "${of}"
at ${publicUrl}, in the role ${role}.

If you have no account with this address, open this link within 7 days and
choose a password:

${publicUrl}/app/join#${token}

A program does the same with:

  curl ${publicUrl}/api/invitations/accept \\
    -H 'Content-Type: application/json' \\
    -d '{"token":"${token}",
      "password":"<a new one>"}'

If you have an account with this address, sign in first, then open the link.
You leave your own account, which must have no subscription and no live keys,
and you are signed out.

If you do not know the sender, ignore this mail: nothing happens.
`,
  };
}

/** The mail for an event of the account, e.g. `quota.warning`. */
export function eventMail(
  to: string,
  publicUrl: string,
  event: { readonly type: string; readonly data: Readonly<Record<string, unknown>> },
): Mail {
  const { type, data } = event;
  const subject = subjectOf(type, data);
  const lines = Object.entries(data).map(([name, value]) => `  ${name}: ${textOf(value)}`);
  const footer = footerOf(type, data, publicUrl);
  return { to, subject, text: [`${subject}.`, lines.join('\n'), `${footer}\n`].join('\n\n') };
}

function subjectOf(type: string, data: Readonly<Record<string, unknown>>): string {
  switch (type) {
    case 'quota.warning':
      return `You have used ${data.percent} % of today's calls`;
    case 'payment.failed':
      return 'A payment failed: your access ends unless it is paid';
    case 'payment.reminder':
      return `Your payment is overdue: access ends in ${counted(data.days_left, 'day')}`;
    case 'key.expiring':
      return `Your key ${data.hint} expires soon: rotate it`;
    case 'subscription.changed':
      return 'Your subscription has changed';
    case 'account.closed':
      return 'Your account is closed';
    case 'account.suspended':
      return 'Your account was suspended';
    case 'account.unsuspended':
      return 'Your account has access again';
    case 'account.reopened':
      return 'Your account was reopened';
    case 'password.changed':
      return 'Your password was changed';
    case 'key.created':
      return 'A new key was made';
    case 'scheme.created':
      return `A new authentication scheme was made: ${data.name}`;
    case 'member.joined':
      return `A new member acts for your account: ${data.email}`;
    case 'member.removed':
      return `A member was removed from your account: ${data.email}`;
    case 'member.role_changed':
      return `A member has another role: ${data.email} is ${data.to}`;
    case 'webhook.created':
      return `A new webhook endpoint was made: ${data.origin}`;
    case 'webhook.moved':
      return `A webhook endpoint has a new URL: ${data.origin}`;
    case 'sign_in.new_address':
      return `A sign-in from a new address: ${data.address}`;
    case 'second_factor.enabled':
      return 'Your second factor is in force';
    case 'second_factor.removed':
      return 'Your second factor was removed';
    case 'second_factor.attempts':
      return 'Someone with your password or session tries codes';
    case 'recovery_code.used':
      return `A recovery code was used: ${data.left} are left`;
    case 'recovery_codes.renewed':
      return 'Your recovery codes were replaced';
    case 'endpoint.failing':
      return `Your webhook endpoint is failing: ${data.percent} % of the grace period has passed`;
    case 'endpoint.disabled':
      return 'Your webhook endpoint was disabled';
    default:
      return `pillole: ${type}`;
  }
}

/** Advice to the customer on how to act. */
function footerOf(
  type: string,
  data: Readonly<Record<string, unknown>>,
  publicUrl: string,
): string {
  switch (type) {
    case 'account.closed':
      return (
        'All keys and sessions have ended, and no subscription will be renewed. If it was not you, or\n' +
        'if you want the account back before it is erased, reply to this mail: our support can reopen it.'
      );
    case 'account.suspended':
      return (
        (data.reason === 'payment_due'
          ? 'A payment was due for 7 days. Pay at the billing provider, and access returns at once.\n'
          : '') +
        'Reads, streams and webhooks are refused from now on. Pills of this time are not posted to\n' +
        'your endpoints; history has them.\n' +
        'Your keys stay as they are, and you can sign in. To write to us, reply to this mail, or open\n' +
        `a ticket with the priority of your tier: POST ${publicUrl}/api/support.\n` +
        `What still works: GET ${publicUrl}/api/account.`
      );
    case 'account.unsuspended':
      return (
        'Your keys and endpoints work as before. Pills that your webhooks missed:\n' +
        `POST ${publicUrl}/api/webhooks/{id}/replay; all others are in the history.`
      );
    case 'account.reopened':
      return (
        'Sign in with your password. Your keys and your subscription stay ended: subscribe at\n' +
        `POST ${publicUrl}/api/subscription/checkout, then create keys at POST ${publicUrl}/api/keys.\n` +
        'Your webhook endpoints are as they were, and need a subscription that includes webhooks.\n' +
        'If the status is suspended, the account has no access yet: reply to this mail.'
      );
    case 'endpoint.failing':
    case 'endpoint.disabled':
      return endpointFooterOf(type, `${publicUrl}/api/webhooks/${data.endpoint}`);
    case 'password.changed':
      return (
        'All sessions were signed out; your keys keep working. If it was you,\n' +
        'just sign in again. If it was not you, request a new password at once:\n' +
        `${publicUrl}/app/forgotten\n` +
        'Then sign in, revoke the keys that are not yours\n' +
        `(${publicUrl}/app/settings/api-keys), and review what was done:\n` +
        `GET ${publicUrl}/api/account/audit.`
      );
    case 'key.created':
    case 'scheme.created':
    case 'member.joined':
    case 'member.removed':
    case 'member.role_changed':
    case 'webhook.created':
    case 'webhook.moved':
    case 'sign_in.new_address':
    case 'second_factor.enabled':
    case 'second_factor.removed':
    case 'second_factor.attempts':
    case 'recovery_code.used':
    case 'recovery_codes.renewed':
      return (
        'If it was you, there is nothing to do. If it was not you, request a new password at once:\n' +
        `${publicUrl}/app/forgotten, which ends all sign-ins. Then sign in, and end what is\n` +
        `not yours: GET ${publicUrl}/api/keys, ${publicUrl}/api/manager/authentication,\n` +
        `${publicUrl}/api/webhooks, ${publicUrl}/api/manager/members,\n` +
        `${publicUrl}/api/account/audit.`
      );
    default:
      return `Your plan and usage: GET ${publicUrl}/api/account, GET ${publicUrl}/api/usage.`;
  }
}

function endpointFooterOf(
  type: 'endpoint.failing' | 'endpoint.disabled',
  endpoint: string,
): string {
  if (type === 'endpoint.failing') {
    return (
      'Please repair the receiver. One message answered with 2xx resets the countdown. See the\n' +
      `answers to recent messages: GET ${endpoint}/attempts.`
    );
  }
  return (
    'No messages are sent to the endpoint any more. Repair the receiver; its recent answers are at\n' +
    `GET ${endpoint}/attempts. Then enable the endpoint: PATCH ${endpoint}\n` +
    `'{"status":"enabled"}'. Once it has answered the test message, have the missed messages sent:\n` +
    `POST ${endpoint}/recover.`
  );
}

function counted(count: unknown, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** UTC, to the minute. */
function minuteOf(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
