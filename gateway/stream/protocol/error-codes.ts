import type { CloseName } from './close-codes.ts';

/** An error that ends the connection with a close code. */
const fatal = <C extends CloseName>(close: C, meaning: string) => ({ meaning, close });

/**
 * Every code of an `error` frame or a rejected symbol. Errors that are not `fatal` leave the
 * connection open. Contract: codes are never renamed.
 */
export const ERROR_CODES = {
  json_malformed: { meaning: 'The frame is not a single, strictly formed JSON object.' },
  text_only: { meaning: 'Binary frames are not accepted; send text frames.' },
  unknown_op: { meaning: 'The op is unknown.' },
  unknown_field: { meaning: 'The op has no such field.' },
  missing_field: { meaning: 'The op requires this field.' },
  wrong_type: { meaning: 'A field has the wrong type.' },
  out_of_range: { meaning: 'A value is outside its range.' },
  position_malformed: { meaning: 'The position to resume from is malformed.' },
  auth_not_needed: {
    meaning: 'The connection is already authenticated; no `auth` frame is needed.',
  },
  auth_missing: fatal('auth_missing', 'No credential arrived in time.'),
  key_invalid: fatal('key_invalid', 'The key, ticket, signature or token is not valid.'),
  scope_missing: fatal('key_invalid', 'The key lacks the `stream` scope.'),
  key_revoked: fatal('key_revoked', 'The key was revoked.'),
  keys_refused: fatal(
    'key_revoked',
    'The account accepts only signatures and tokens instead of keys, or instead of this key.',
  ),
  credential_expired: fatal('credential_expired', 'The key or token has expired.'),
  address_refused: fatal('address_refused', 'The key may not be used from this address.'),
  tier_too_low: fatal(
    'tier_too_low',
    'The tier does not include streams; the tier in `needs` does.',
  ),
  subscription_ended: fatal('subscription_ended', 'The account has no active subscription.'),
  account_suspended: fatal(
    'subscription_ended',
    'The account is suspended or closed; `reason` is `operator`, `payment_due` or `closed`.',
  ),
  dedicated_removed: fatal(
    'dedicated_removed',
    'The dedicated socket was removed, or the overlap of its rotation has ended.',
  ),
  dedicated_unknown: fatal(
    'dedicated_removed',
    'No dedicated socket of this name is served at this address.',
  ),
  accounts_unavailable: fatal('log_unavailable', 'Accounts are temporarily unavailable.'),
  symbol_malformed: { meaning: 'The symbol is malformed.' },
  symbol_refused: {
    meaning: 'The desk of the key may not read the symbol, or not all symbols (`*`).',
  },
  symbols_changed: fatal(
    'credential_expired',
    'The desk of the key may no longer read a symbol of the connection.',
  ),
  symbol_limit: { meaning: 'The connection already names the maximum number of symbols.' },
  too_fast: fatal(
    'too_fast',
    'The client sent more frames per second than allowed, or its scheme signed too many requests.',
  ),
  protocol_error: fatal('protocol_error', 'The client sent too many invalid frames.'),
  frame_too_large: fatal('frame_too_large', 'A frame exceeded the size limit.'),
  slow_consumer: fatal(
    'slow_consumer',
    'Unread data exceeded the queue of the connection or the total of the process.',
  ),
  origin_refused: fatal('origin_refused', 'Pages of this origin may not connect.'),
  taken_over: fatal('taken_over', 'The account owner closed the session.'),
  connection_limit: fatal('connection_limit', 'Too many connections are open.'),
  not_ready: fatal('log_unavailable', 'The instance is still starting, or is stopping.'),
  internal: fatal('internal', 'An internal server error ended the connection.'),
} as const;

export type ErrorName = keyof typeof ERROR_CODES;
/** Codes of errors that end the connection. */
export type FatalName = {
  [N in ErrorName]: (typeof ERROR_CODES)[N] extends { close: CloseName } ? N : never;
}[ErrorName];
