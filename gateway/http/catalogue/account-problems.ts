import { problemTypes } from './problem-type.ts';

/** Problems of what an account owns: keys, subscription, dedicated sockets, webhooks. */
export const ACCOUNT_PROBLEMS = problemTypes({
  token_invalid: {
    status: 400,
    title: 'The token is no longer valid',
    meaning: 'The token from the mail is unknown, already used, or too old.',
    remedy:
      'Request another mail at POST /api/users/verify/resend or POST /api/password/reset; ask for ' +
      'another invitation.',
  },
  billing_event_invalid: {
    status: 400,
    title: 'The billing event was refused',
    meaning: 'The signature is missing, wrong or too old, or the kind of event is unknown.',
    remedy: 'Sign the exact bytes of the body with the secret of this endpoint.',
  },
  payment_required: {
    status: 402,
    title: 'The tier must be paid first',
    meaning: 'The tier in `tier` is higher than the present one. Nothing was changed.',
    remedy: 'Begin its checkout at POST /api/subscription/checkout, which states the amount.',
  },
  payment_overdue: {
    status: 402,
    title: 'A payment is overdue',
    meaning: 'While a payment is overdue, no tier can be bought or kept for another period.',
    remedy: 'Pay the amount due at the billing provider, then send the request again.',
  },
  object_not_found: {
    status: 404,
    title: 'No such object',
    meaning: 'The account has no object with this id.',
    remedy: 'Use an id from the list of these objects.',
  },
  key_limit: {
    status: 409,
    title: 'No room for another key',
    meaning: 'The account has the maximum number of live keys.',
    remedy: 'Revoke an unused key at DELETE /api/keys/{id}.',
  },
  member_limit: {
    status: 409,
    title: 'No room for another member',
    meaning: 'Members and open invitations together have reached the limit, `limit`.',
    remedy: 'Remove a member or revoke an invitation at /api/manager/members.',
  },
  desk_limit: {
    status: 409,
    title: 'No room for another desk',
    meaning: 'The account has the maximum number of desks, `limit`.',
    remedy: 'Remove an unused desk at DELETE /api/manager/desks/{name}.',
  },
  precondition_failed: {
    status: 412,
    title: 'The object is not as you know it',
    meaning:
      'The object has another entity tag than `If-Match` names, or exists although ' +
      '`If-None-Match: *` says that it must not.',
    remedy: 'Read the object again, and decide anew with its `ETag`.',
  },
  precondition_required: {
    status: 428,
    title: 'Say which state you change',
    meaning: 'The object exists. Without `If-Match`, a change could undo one that you do not know.',
    remedy: 'Read the object, and send its `ETag` as `If-Match`.',
  },
  scheme_limit: {
    status: 409,
    title: 'No room for another authentication scheme',
    meaning: 'The account has the maximum number of authentication schemes, `limit`.',
    remedy: 'Remove an unused scheme at DELETE /api/manager/authentication/schemes/{id}.',
  },
  dedicated_limit: {
    status: 409,
    title: 'No room for another dedicated socket',
    meaning: 'The account has the maximum number of dedicated sockets, `limit`.',
    remedy: 'Remove an unused socket, or rotate without an overlap.',
  },
  webhook_limit: {
    status: 409,
    title: 'No room for another webhook endpoint',
    meaning: 'The account has as many webhook endpoints as its tier allows, `limit`.',
    remedy: 'Delete an unused endpoint, or change to a tier that allows more.',
  },
  webhook_secret_limit: {
    status: 409,
    title: 'Too many secrets are in force',
    meaning:
      'Former secrets keep signing during their overlap; `in_force` says when each one expires.',
    remedy: 'Wait until a secret expires, or rotate with `overlap_s` 0, which ends all others.',
  },
  destination_limit: {
    status: 409,
    title: 'No room for another destination',
    meaning: 'The account has the maximum number of destinations, `limit`.',
    remedy: 'Remove an unused destination at DELETE /api/destinations/{id}.',
  },
  webhook_backlog_full: {
    status: 409,
    title: 'Too many messages wait for the endpoint',
    meaning:
      'The maximum number of messages, `limit`, waits for the endpoint. This call added none.',
    remedy: 'Check at GET /api/webhooks/{id}/attempts why they are not delivered; then call again.',
  },
  webhook_log_unavailable: {
    status: 503,
    title: 'The attempt log is unavailable',
    meaning: 'The database of the attempt log does not answer. Messages are still delivered.',
    remedy: 'Send the request again after `Retry-After`.',
  },
  state_conflict: {
    status: 409,
    title: 'Not possible in this state',
    meaning: 'The object is in a state that does not allow this request; see `detail`.',
    remedy: 'Read the object again, and send a request that its state allows.',
  },
  billing_off: {
    status: 503,
    title: 'Nothing can be bought here',
    meaning:
      'This service has no payment provider, and its test provider, which moves no money, is off.',
    remedy: 'Ask the operator for a subscription. BILLING=test turns on free test subscriptions.',
    retry: 'never',
  },
});
