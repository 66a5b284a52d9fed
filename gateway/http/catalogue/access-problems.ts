import { problemTypes } from './problem-type.ts';

/** Not a registered scheme: there is none for a key in a header of its own. This is the usual name. */
const KEY_CHALLENGE = 'ApiKey realm="pillole", header="X-API-Key"';
/** As named by draft-broyer-http-cookie-auth. */
const SESSION_CHALLENGE = 'Cookie realm="pillole", cookie-name="pillole_session"';

/** Not registered either; RFC 9421 names none. */
const SIGNATURE_CHALLENGE =
  'Signature realm="pillole", components="@method @target-uri content-digest", params="created keyid nonce"';
/** RFC 6750, section 3. */
const TOKEN_CHALLENGE = 'Bearer realm="pillole", error="invalid_token"';

/** Problems of credentials, entitlement, limits and quotas. */
export const ACCESS_PROBLEMS = problemTypes({
  key_invalid: {
    status: 401,
    title: 'The API key is not valid',
    meaning: 'The key in the `X-API-Key` header is unknown, revoked or expired.',
    remedy: 'Send a live key of the account; its owner sees all keys at GET /api/keys.',
    challenge: KEY_CHALLENGE,
  },
  key_missing: {
    status: 401,
    title: 'An API key is required',
    meaning:
      'The request has no `X-API-Key` header; where a session would do, it has none in force.',
    remedy: 'Send a key of the account in the `X-API-Key` header.',
    challenge: KEY_CHALLENGE,
  },
  key_scheme_wrong: {
    status: 401,
    title: 'The API key must be alone in X-API-Key',
    meaning:
      'The request has an `Authorization` header, or a scheme such as `Bearer` with the key.',
    remedy: 'Send `X-API-Key: pil_live_…`, without `Bearer` and without `Authorization`.',
    challenge: KEY_CHALLENGE,
  },
  key_in_url: {
    status: 401,
    title: 'The API key must not be in the URL',
    meaning:
      'The query of the URL seems to hold a key. URLs are stored in logs and histories, so keys ' +
      'are accepted only in the `X-API-Key` header.',
    remedy: 'Revoke the key at DELETE /api/keys/{id}, create another, and send it in `X-API-Key`.',
    challenge: KEY_CHALLENGE,
  },
  key_malformed: {
    status: 401,
    title: 'This is not an API key',
    meaning:
      'The text in the `X-API-Key` header does not have the form of a key, or its checksum is wrong.',
    remedy:
      'Copy the key again as a whole: `pil_live_`, 32 letters and digits, `_` and 6 more. Send it ' +
      'once, without quotes.',
    challenge: KEY_CHALLENGE,
  },
  credentials_mixed: {
    status: 401,
    title: 'Send one credential',
    meaning: 'The request has more than one of a key, a signature and a token.',
    remedy: 'Send only `X-API-Key`, or only `Signature` and `Signature-Input`, or only a token.',
    challenge: KEY_CHALLENGE,
  },
  signature_malformed: {
    status: 401,
    title: 'The signature is malformed or too old',
    meaning:
      'The HTTP message signature (RFC 9421) does not have the required form, or is too old; `check` ' +
      'names the part, and `detail` says what to correct.',
    remedy:
      'Sign `@method`, `@target-uri` and, where there is a body, `content-digest`, with `created`, ' +
      '`keyid` and a new `nonce`, under one label.',
    challenge: SIGNATURE_CHALLENGE,
  },
  signature_invalid: {
    status: 401,
    title: 'The signature is not valid',
    meaning:
      'The scheme in `keyid` is unknown, off, removed or expired, or the signature does not fit the ' +
      'request as it arrived.',
    remedy:
      'Open a trial of the scheme, and send the request to POST /api/authentication/check, which ' +
      'says which part fails.',
    challenge: SIGNATURE_CHALLENGE,
  },
  signature_replayed: {
    status: 401,
    title: 'The signature was used before',
    meaning: 'Another request has used the same `nonce`: each signature is accepted once.',
    remedy: 'Sign each request again, repeats included, with a new random `nonce`.',
    challenge: SIGNATURE_CHALLENGE,
  },
  access_token_malformed: {
    status: 401,
    title: 'The token is malformed or has expired',
    meaning:
      'The bearer token is not a JWT of the required form, or has expired; `check` names the part, ' +
      'and `detail` says what to correct.',
    remedy:
      'Send a signed JWT with `kid`, and with the id of the scheme as its audience (`aud`), that ' +
      'has not expired.',
    challenge: TOKEN_CHALLENGE,
  },
  access_token_invalid: {
    status: 401,
    title: 'The token is not valid',
    meaning:
      'The scheme in the audience of the token is unknown, off, removed or expired, or no key of ' +
      'its issuer fits the token.',
    remedy:
      'Open a trial of the scheme, and send the token to POST /api/authentication/check, which says ' +
      'which part fails.',
    challenge: TOKEN_CHALLENGE,
  },
  session_required: {
    status: 401,
    title: 'Sign in first',
    meaning: 'This endpoint accepts only a signed-in session, not an API key.',
    remedy: 'Sign in at POST /api/session, and send the cookie that it sets.',
    challenge: SESSION_CHALLENGE,
  },
  sign_in_refused: {
    status: 401,
    title: 'Wrong e-mail address or password',
    meaning: 'No user has this e-mail address and password.',
    remedy: 'Correct them, or reset the password at POST /api/password/reset.',
    challenge: SESSION_CHALLENGE,
  },
  second_factor_required: {
    status: 401,
    title: 'A code is required',
    meaning: 'The password is right, and the user has a second factor.',
    remedy:
      'Send `code` with e-mail address and password: the six digits of your authenticator, or a ' +
      'recovery code.',
    challenge: SESSION_CHALLENGE,
  },
  second_factor_refused: {
    status: 401,
    title: 'Wrong or used code',
    meaning: 'The code is wrong, too old, or was used before: each code works once.',
    remedy: 'Wait for the next code of your authenticator, or use a recovery code.',
    challenge: SESSION_CHALLENGE,
  },
  second_factor_stale: {
    status: 403,
    title: 'Prove the second factor again',
    meaning: 'This needs a session that has proved its second factor within the last 10 minutes.',
    remedy:
      'Send a code as `code` to POST /api/session/second-factor, then send this request again.',
  },
  verification_unproven: {
    status: 403,
    title: 'Show that you signed up',
    meaning:
      'The token is valid, but neither the session nor the password of the sign-up came with it. ' +
      'Someone else may have signed up with your address.',
    remedy:
      'Send `password`, the one of the sign-up, with the token. If you did not sign up, set a ' +
      'password of your own at POST /api/password/reset, which verifies the address too.',
  },
  email_unverified: {
    status: 403,
    title: 'The e-mail address is not verified',
    meaning:
      'You cannot buy a subscription, create a key or set up a second factor before you verify your ' +
      'e-mail address.',
    remedy:
      'Send the token from our mail and your password to POST /api/users/verify, or request another mail at ' +
      'POST /api/users/verify/resend.',
  },
  csrf_token_invalid: {
    status: 403,
    title: 'The CSRF token is missing or wrong',
    meaning:
      'A request by session that changes something, or counts as a call, must repeat the CSRF token of the session.',
    remedy: 'Send the `csrf_token` of GET /api/session in the X-CSRF-Token header.',
  },
  address_refused: {
    status: 403,
    title: 'The key may not be used from this address',
    meaning: 'The key may be used only from the networks on its allow-list.',
    remedy: 'Call from one of these networks, or add yours at PATCH /api/keys/{id}.',
  },
  keys_refused: {
    status: 403,
    title: 'Keys are switched off',
    meaning:
      'The key is valid, but its owner accepts only signed requests, or tokens, of authentication ' +
      'schemes instead.',
    remedy:
      'Sign the request, or let a signed-in user accept keys again at PATCH ' +
      '/api/manager/authentication.',
  },
  scope_missing: {
    status: 403,
    title: 'The key lacks a scope',
    meaning: 'The key does not have the scope in `needs`.',
    remedy: 'Use a key that has this scope, or add the scope at PATCH /api/keys/{id} by session.',
  },
  symbol_refused: {
    status: 403,
    title: 'The desk of the key may not read this symbol',
    meaning:
      'The key belongs to the desk `desk`, which is limited to some symbols; `symbols` lists those ' +
      'of the request that are not among them, or `detail` says what else is refused.',
    remedy: 'Ask for symbols of the desk, or let a manager change them at /api/manager/desks.',
  },
  permission_missing: {
    status: 403,
    title: 'Your role does not permit this',
    meaning:
      'You act for the account in the role `role`, which lacks the permission in `permission`.',
    remedy:
      'Ask a member with one of the `roles` to do this, or an owner to change your role at PATCH ' +
      '/api/manager/members/{id}.',
  },
  membership_inactive: {
    status: 403,
    title: 'Only owners have access now',
    meaning:
      'The tier of the account has no API manager, so members besides its owners have no access. ' +
      'Nothing was deleted.',
    remedy: 'Ask an owner to subscribe to a tier with the API manager.',
  },
  subscription_required: {
    status: 403,
    title: 'A subscription is required',
    meaning: 'The account has no active subscription.',
    remedy: 'Subscribe to a tier at POST /api/subscription/checkout, then call again.',
  },
  account_closed: {
    status: 403,
    title: 'The account is closed',
    meaning: 'The owner closed the account: sign-in is off, and its data is erased at `erased_at`.',
    remedy:
      'To have the account reopened before `erased_at`, write to the address in `support`; ' +
      'afterwards, sign up again. A reopened account needs a new subscription and new keys.',
  },
  account_suspended: {
    status: 403,
    title: 'The account is suspended',
    meaning:
      'A payment is more than 7 days overdue (`payment_due`), the operator suspended the account ' +
      '(`operator`), or the account was closed (`closed`); `reason` says which, `detail` why.',
    remedy:
      'Pay the amount due, or open a ticket at POST /api/support, which has the priority of your ' +
      'tier; the calls in `still_works` go on working. GET /api/account shows the reason too.',
  },
  tier_too_low: {
    status: 403,
    title: 'The tier does not include this',
    meaning:
      'The tier of the account does not include this feature; `needs` names a tier that does.',
    remedy: 'Upgrade to the tier in `needs` at POST /api/subscription/checkout.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many calls a second',
    meaning:
      'The burst limit of the account, of its desk or of the address is used up in this process; ' +
      '`scope` says which.',
    remedy: 'Send the request again after `Retry-After`, and spread calls over the second.',
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  },
  daily_quota_exceeded: {
    status: 429,
    title: 'Daily quota used up',
    meaning:
      'All keys of the account, or of its desk, together have used up the calls of this UTC day; ' +
      '`scope` says which.',
    remedy: 'Wait until `resets_at`, or change to a tier with more calls.',
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  },
  too_many_attempts: {
    status: 429,
    title: 'Too many attempts',
    meaning: 'There were too many attempts of this kind from this address or for this user.',
    remedy: 'Wait for `Retry-After`, then try again.',
  },
  accounts_unavailable: {
    status: 503,
    title: 'Accounts are unavailable',
    meaning: 'The accounts database does not answer; the call was not counted.',
    remedy: 'Send the request again after `Retry-After`; open sockets stay open for a minute.',
  },
  issuer_unavailable: {
    status: 503,
    title: 'The keys of the issuer cannot be read',
    meaning:
      'The token names a scheme whose `jwks_url` gave no usable key set, and no earlier keys are known.',
    remedy: 'Check the server at `jwks_url`, then send the request again after `Retry-After`.',
  },
  account_outcome_unknown: {
    status: 503,
    title: 'The outcome is unknown',
    meaning: 'The accounts database did not confirm whether it stored the change.',
    remedy: 'Check whether the change was made, as `detail` says, before you send it again.',
    retry: 'check',
  },
});
