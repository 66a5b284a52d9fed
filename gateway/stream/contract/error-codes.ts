import type { CloseName } from './close-codes.ts';

export interface ErrorCode {
  readonly meaning: string;
  /** The connection ends with this close code; absent when it goes on. */
  readonly close?: CloseName;
}

/** Every code of an `error` frame, and of a rejected symbol. Contract: never renamed. */
export const ERROR_CODES = {
  json_malformed: { meaning: 'The frame is not one JSON object in strict form.' },
  text_only: { meaning: 'Binary frames are not read.' },
  unknown_op: { meaning: 'The op is not known.' },
  unknown_field: { meaning: 'The op has no such field.' },
  missing_field: { meaning: 'The op needs this field.' },
  wrong_type: { meaning: 'A field has another type than the op wants.' },
  out_of_range: { meaning: 'A value is outside its range.' },
  position_malformed: { meaning: 'The position to resume from has not the form of one.' },
  auth_not_needed: { meaning: 'The connection is authenticated already; go on without.' },
  auth_missing: { meaning: 'No credential came in time.', close: 'auth_missing' },
  key_invalid: { meaning: 'The key or ticket opens nothing.', close: 'key_invalid' },
  scope_missing: { meaning: 'The key was not made for streams.', close: 'key_invalid' },
  key_revoked: { meaning: 'The key was revoked.', close: 'key_revoked' },
  credential_expired: { meaning: 'The key has expired.', close: 'credential_expired' },
  address_refused: { meaning: 'The key is not for this address.', close: 'address_refused' },
  tier_too_low: { meaning: 'The tier has no streams; `needs` has.', close: 'tier_too_low' },
  subscription_ended: { meaning: 'No subscription in force.', close: 'subscription_ended' },
  dedicated_removed: {
    meaning: 'This dedicated socket was removed, or its rotation is over.',
    close: 'dedicated_removed',
  },
  accounts_unavailable: { meaning: 'Accounts cannot be asked.', close: 'log_unavailable' },
  symbol_malformed: { meaning: 'The symbol has a form that no symbol has.' },
  symbol_limit: { meaning: 'The connection names too many symbols.' },
  too_fast: { meaning: 'More frames a second than allowed.', close: 'too_fast' },
  protocol_error: { meaning: 'Too many faulty frames.', close: 'protocol_error' },
  frame_too_large: { meaning: 'A frame was over the limit.', close: 'frame_too_large' },
  slow_consumer: {
    meaning: 'More waited unread than the queue, or all queues of the process, hold.',
    close: 'slow_consumer',
  },
  origin_refused: { meaning: 'Pages of this origin may not connect.', close: 'origin_refused' },
  taken_over: { meaning: 'The owner closed the session.', close: 'taken_over' },
  connection_limit: { meaning: 'Too many connections are open.', close: 'connection_limit' },
  not_ready: { meaning: 'The log is not read to its end yet.', close: 'log_unavailable' },
  internal: { meaning: 'A fault of ours ended the connection.', close: 'internal' },
} as const satisfies Readonly<Record<string, ErrorCode>>;

export type ErrorName = keyof typeof ERROR_CODES;
/** Codes of errors that end the connection. */
export type FatalName = {
  [N in ErrorName]: (typeof ERROR_CODES)[N] extends { close: CloseName } ? N : never;
}[ErrorName];
