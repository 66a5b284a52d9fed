import type { AccountAccess } from './account-access.ts';

/** Why an account has no access at all, for people and machines, in the same words everywhere. */
export interface Suspension {
  readonly reason: 'operator' | 'payment_due' | 'closed';
  /** What happened, and whom to write to. */
  readonly detail: string;
  /** What the account can still do. */
  readonly still_works: readonly string[];
}

const STILL_WORKS = [
  ...['POST /api/support', 'GET /api/account', 'GET /api/usage', 'POST /api/session'],
  ...['GET /api/keys', 'GET /api/webhooks', 'DELETE /api/account'],
] as const;

/** Describes an account whose entitlement is `account_suspended`. */
export function suspensionOf({
  status,
  suspendedReason,
}: Pick<AccountAccess, 'status' | 'suspendedReason'>): Suspension {
  if (status === 'closed') {
    const detail =
      'The account was closed. Within 30 days our support can reopen it: write to it by mail.';
    return { reason: 'closed', detail, still_works: [] };
  }
  if (status === 'suspended') {
    const why = suspendedReason === undefined ? '.' : `: ${suspendedReason.replace(/\.?$/, '.')}`;
    const detail = `The operator suspended the account${why} ${WRITE}`;
    return { reason: 'operator', detail, still_works: STILL_WORKS };
  }
  const detail =
    'A payment is more than 7 days overdue. Pay at the billing provider, and access returns at ' +
    `once. ${WRITE}`;
  return { reason: 'payment_due', detail, still_works: STILL_WORKS };
}

const WRITE =
  'To write to us, open a ticket at POST /api/support with a key of scope `support` or signed in: ' +
  "it has your tier's priority.";
