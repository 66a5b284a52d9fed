/** What a client may do after a problem: contract, as the codes are. */
export type Retry =
  /** The same request will fail again. */
  | 'never'
  /** Nothing happened; send it again after `retry_after_s`. */
  | 'after'
  /** It may have happened; sending the same id again is safe. */
  | 'same_id'
  /** It may have happened: look before it is sent again. */
  | 'check';

/** One kind of problem (RFC 9457), as the reference page and the answers tell it. */
export interface ProblemType {
  readonly status: number;
  readonly title: string;
  readonly meaning: string;
  readonly remedy: string;
  readonly retry: Retry;
  /** Absolute `type`, where a registry has one; else it is our page of the problem. */
  readonly type?: string;
  /** `WWW-Authenticate`, which every 401 must have (RFC 9110 section 15.5.2). */
  readonly challenge?: string;
}

/** No scheme is registered for a key in a header of its own: the usual name, and which header. */
const KEY_CHALLENGE = 'ApiKey realm="pillole", header="X-API-Key"';
/** As draft-broyer-http-cookie-auth names it. */
const SESSION_CHALLENGE = 'Cookie realm="pillole", cookie-name="pillole_session"';

/** Every problem an HTTP answer of ours may carry. Codes are contract: never renamed. */
export const PROBLEMS = {
  pill_invalid: {
    status: 400,
    title: 'The pill was refused',
    meaning: 'The body is not a pill. `errors` lists every fault with its JSON pointer.',
    remedy: 'Correct each fault as its `detail` says, then send the pill again.',
    retry: 'never',
  },
  batch_invalid: {
    status: 400,
    title: 'The batch was refused',
    meaning: 'The body as a whole is not a batch; no row of it was looked at.',
    remedy: 'Send a JSON array or NDJSON of 1 to 1,000 pills.',
    retry: 'never',
  },
  http_malformed: {
    status: 400,
    title: 'Not a well-formed HTTP request',
    meaning: 'The request is malformed or ambiguous: for example, it has two Host headers.',
    remedy: 'Send it with an ordinary HTTP/1.1 client, and look at the headers that you set.',
    retry: 'never',
  },
  credential_missing: {
    status: 401,
    title: 'A generator credential is required',
    meaning: 'There is no Authorization header of the form `Bearer gen_…`.',
    remedy: 'Send the generator token that the operator gave you.',
    retry: 'never',
    challenge: 'Bearer realm="pillole ingest"',
  },
  credential_invalid: {
    status: 403,
    title: 'The generator credential was refused',
    meaning: 'The token is unknown, expired or withdrawn.',
    remedy: 'Ask the operator for a new generator token.',
    retry: 'never',
  },
  not_found: {
    status: 404,
    title: 'No such address',
    meaning: 'This server has nothing at this path.',
    remedy: 'Compare the path with the reference at GET /docs of the API.',
    retry: 'never',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed here',
    meaning: 'The path exists, the method does not. `Allow` names those that do.',
    remedy: 'Use a method that `Allow` names.',
    retry: 'never',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    meaning: 'Headers or body were not complete in time.',
    remedy: 'Send it again, headers and body without a pause.',
    retry: 'after',
  },
  id_conflict: {
    status: 409,
    title: 'This id is taken by another pill',
    meaning: 'A pill with this symbol and id, but with other content, was stored before.',
    remedy: 'Send it with a new id: a stored pill is never changed.',
    retry: 'never',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    meaning: 'The body is over the limit of this endpoint; the connection is closed.',
    remedy: 'Send less at once: one pill alone, or the batch in parts.',
    retry: 'never',
  },
  media_type_unsupported: {
    status: 415,
    title: 'This media type is not read here',
    meaning: 'Content-Type or Content-Encoding is not one that this address reads.',
    remedy: 'Send uncompressed JSON with the header Content-Type: application/json.',
    retry: 'never',
  },
  expectation_failed: {
    status: 417,
    title: 'The expectation cannot be met',
    meaning: 'The Expect header asks for something other than 100-continue.',
    remedy: 'Leave the Expect header out.',
    retry: 'never',
  },
  upgrade_required: {
    status: 426,
    title: 'This address speaks WebSocket',
    meaning: 'The path is the stream, asked for without a WebSocket handshake.',
    remedy: 'Open it with a WebSocket client.',
    retry: 'never',
  },
  connection_flood: {
    status: 429,
    title: 'Too many connections are being opened',
    meaning: 'More handshakes came in this second than the process takes.',
    remedy: 'Open it again after `Retry-After`, with jitter.',
    retry: 'after',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    meaning: 'There are too many headers, or too many bytes of them.',
    remedy: 'Send only the headers that are needed, and no large cookies.',
    retry: 'never',
  },
  parameter_invalid: {
    status: 400,
    title: 'A parameter was refused',
    meaning: 'A query parameter is unknown, given twice or malformed. `errors` names each.',
    remedy: 'Correct the parameters that `errors` names.',
    retry: 'never',
  },
  no_pill: {
    status: 404,
    title: 'No pill yet',
    meaning: 'No pill of this symbol, or none at all, was ever received.',
    remedy: 'Check the symbol; pills appear as soon as the generator sends one.',
    retry: 'never',
  },
  position_unknown: {
    status: 410,
    title: 'This position is from another log',
    meaning: 'Its epoch or one of its partitions does not exist; it cannot be compared with ours.',
    remedy: 'Take a new position from any answer, and read what lies between from history.',
    retry: 'never',
  },
  not_ready: {
    status: 503,
    title: 'Not ready yet',
    meaning: 'The process has just started and is reading the log.',
    remedy: 'Send it again after `Retry-After`, or ask another instance.',
    retry: 'after',
  },
  position_not_reached: {
    status: 503,
    title: 'The position was not reached in time',
    meaning: 'The view did not arrive at the position asked for within 1 s.',
    remedy: 'Send it again after `Retry-After`, with a position that an answer has told you.',
    retry: 'after',
  },
  grant_invalid: {
    status: 403,
    title: 'The grant was refused',
    meaning:
      'The grant is over, or was handed out for another account or range. Nothing was counted.',
    remedy:
      'Ask for the call of the gap frame as it stands; or leave `grant` out, then the call counts.',
    retry: 'never',
  },
  history_behind: {
    status: 503,
    title: 'History has not come so far yet',
    meaning:
      'Pills up to `until` are not all stored yet; nothing is left out silently. `position` tells ' +
      'how far history is.',
    remedy:
      'Send it again after `Retry-After`, or with `until` at `position`. Pills are stored within ' +
      'seconds; GET /api/pills/latest is not behind.',
    retry: 'after',
  },
  history_unavailable: {
    status: 503,
    title: 'History cannot be read now',
    meaning: 'The database of history does not answer. Streams and the newest pills go on.',
    remedy: 'Send it again after `Retry-After`; pages that you have stay right.',
    retry: 'after',
  },
  query_too_large: {
    status: 400,
    title: 'The question is too large',
    meaning: 'Answering it went over the bounds of time, memory or pills read of one question.',
    remedy: 'Ask for a shorter time, such as that of `try`, or for fewer symbols.',
    retry: 'never',
  },
  analytics_unavailable: {
    status: 503,
    title: 'Analytics cannot be read now',
    meaning: 'The database of analytics does not answer. Streams and the newest pills go on.',
    remedy: 'Send it again after `Retry-After`.',
    retry: 'after',
  },
  webhook_log_unavailable: {
    status: 503,
    title: 'The log of attempts cannot be read now',
    meaning: 'The database of the log does not answer. Messages are posted all the same.',
    remedy: 'Send it again after `Retry-After`.',
    retry: 'after',
  },
  history_too_heavy: {
    status: 400,
    title: 'The page is too heavy',
    meaning: 'Reading this page went over the bounds of time, memory or pills read of one page.',
    remedy: 'Ask for less at once: a smaller `limit`, a shorter range, or one symbol.',
    retry: 'never',
  },
  overloaded: {
    status: 503,
    title: 'Overloaded',
    meaning: 'This process has as much to do as it takes. Nothing of this request was stored.',
    remedy: 'Send it again after `Retry-After`; double the wait each time it happens.',
    retry: 'after',
  },
  log_unavailable: {
    status: 503,
    title: 'Not acknowledged in time',
    meaning: 'The log did not acknowledge in 2 s. `stored` tells whether it may have it.',
    remedy: 'Send it again with the same id after `Retry-After`: a repeat has no second effect.',
    retry: 'same_id',
  },
  symbol_limit: {
    status: 503,
    title: 'No room for another symbol',
    meaning: 'The system holds as many distinct symbols as it may. Known symbols still work.',
    remedy: 'Ask the operator to raise the limit; sending it again does not help until then.',
    retry: 'never',
  },
  body_invalid: {
    status: 400,
    title: 'The body was refused',
    meaning: 'The body is not the JSON document of this address. `errors` lists every fault.',
    remedy: 'Correct each fault at its JSON pointer, then send it again.',
    retry: 'never',
  },
  token_invalid: {
    status: 400,
    title: 'The token is not good any more',
    meaning: 'The token from the mail is unknown, was used before, or is too old.',
    remedy: 'Ask for another mail, at POST /api/users/verify/resend or POST /api/password/reset.',
    retry: 'never',
  },
  billing_event_invalid: {
    status: 400,
    title: 'The billing event was refused',
    meaning: 'Its signature is missing, wrong or too old, or it is no event that we know.',
    remedy: 'Sign the body as it is sent, with the secret of this endpoint.',
    retry: 'never',
  },
  key_invalid: {
    status: 401,
    title: 'A valid API key is required',
    meaning:
      'The `X-API-Key` header is missing, or its key is malformed, unknown, revoked or expired.',
    remedy: 'Send a live key of the account in the `X-API-Key` header, never in the address.',
    retry: 'never',
    challenge: KEY_CHALLENGE,
  },
  session_required: {
    status: 401,
    title: 'Sign in first',
    meaning: 'This address takes a signed-in session alone: no API key opens it.',
    remedy: 'Sign in at POST /api/session, and send the cookie that it sets.',
    retry: 'never',
    challenge: SESSION_CHALLENGE,
  },
  sign_in_refused: {
    status: 401,
    title: 'E-mail address or password is wrong',
    meaning: 'No user has this address with this password.',
    remedy: 'Correct them, or ask for a new password at POST /api/password/reset.',
    retry: 'never',
    challenge: SESSION_CHALLENGE,
  },
  email_unverified: {
    status: 403,
    title: 'The e-mail address is not verified',
    meaning: 'Nothing can be bought, and no key made, before the address is known to be yours.',
    remedy: 'Send the token of our mail to POST /api/users/verify, or ask for another mail.',
    retry: 'never',
  },
  csrf_token_invalid: {
    status: 403,
    title: 'The CSRF token is missing or wrong',
    meaning: 'A request by session that changes something must repeat the token of the session.',
    remedy: 'Send the `csrf_token` of GET /api/session in the X-CSRF-Token header.',
    retry: 'never',
  },
  address_refused: {
    status: 403,
    title: 'The key may not be used from this address',
    meaning: 'The key may be used from the networks of its allow-list alone.',
    remedy: 'Call from one of these networks, or add yours at PATCH /api/keys/{id}.',
    retry: 'never',
  },
  scope_missing: {
    status: 403,
    title: 'The key was not made for this',
    meaning: 'The key lacks the scope in `needs`.',
    remedy: 'Use a key that has this scope, or add the scope at PATCH /api/keys/{id}.',
    retry: 'never',
  },
  subscription_required: {
    status: 403,
    title: 'A subscription is required',
    meaning: 'The account has no subscription in force.',
    remedy: 'Subscribe to a tier at POST /api/subscription/checkout, then call again.',
    retry: 'never',
  },
  account_closed: {
    status: 403,
    title: 'The account is closed',
    meaning: 'Its owner has closed it: nobody can sign in, and its data is erased at `erased_at`.',
    remedy: 'To have it back before that, write to our support by mail; or sign up again after it.',
    retry: 'never',
  },
  account_suspended: {
    status: 403,
    title: 'The account is suspended',
    meaning:
      'A payment is due for over 7 days, the operator suspended it, or it was closed: `reason`.',
    remedy: 'Pay what is due, or write to POST /api/support; GET /api/account tells why too.',
    retry: 'never',
  },
  tier_too_low: {
    status: 403,
    title: 'The tier does not have this',
    meaning: 'Another tier has what was asked for; `needs` names it.',
    remedy: 'Change to the tier that `needs` names, at PATCH /api/subscription.',
    retry: 'never',
  },
  object_not_found: {
    status: 404,
    title: 'No such object',
    meaning: 'The account has no object of this id.',
    remedy: 'Take an id from the list of such objects.',
    retry: 'never',
  },
  key_limit: {
    status: 409,
    title: 'No room for another key',
    meaning: 'The account has as many live keys as an account may have.',
    remedy: 'Revoke a key that is not used any more, at DELETE /api/keys/{id}.',
    retry: 'never',
  },
  dedicated_limit: {
    status: 409,
    title: 'No room for another dedicated socket',
    meaning: 'The account has as many dedicated sockets as an account may have: `limit`.',
    remedy: 'Remove one that is not used any more, or rotate without an overlap.',
    retry: 'never',
  },
  webhook_limit: {
    status: 409,
    title: 'No room for another webhook endpoint',
    meaning: 'The account has as many webhook endpoints as its tier allows: `limit`.',
    remedy: 'Delete one that is not used any more, or change to a tier that has more.',
    retry: 'never',
  },
  webhook_secret_limit: {
    status: 409,
    title: 'Too many secrets are in force',
    meaning: 'Former secrets still sign during their overlap: `in_force` tells until when.',
    remedy: 'Wait until one has expired, or rotate with `overlap_s` 0, which ends all others.',
    retry: 'never',
  },
  webhook_backlog_full: {
    status: 409,
    title: 'Too many messages wait for the endpoint',
    meaning: 'As many messages wait as may: `limit`. None of this call was added to them.',
    remedy: 'Look why they are not delivered, at GET /api/webhooks/{id}/attempts; then call again.',
    retry: 'never',
  },
  state_conflict: {
    status: 409,
    title: 'Not possible in this state',
    meaning: 'What was asked for does not fit the state that the object is in; see `detail`.',
    remedy: 'Read the object again, and ask for what its state allows.',
    retry: 'never',
  },
  billing_off: {
    status: 503,
    title: 'Nothing can be bought here',
    meaning:
      'This service has no payment provider: the test provider, by which no money moves, is off.',
    remedy: 'Ask the operator for a subscription; BILLING=test lets anybody have one for nothing.',
    retry: 'never',
  },
  rate_limited: {
    status: 429,
    title: 'Too many calls a second',
    meaning: 'The burst limit of the account, or of the address, is used up at this process.',
    remedy: 'Send it again after `Retry-After`, and spread the calls over the second.',
    retry: 'after',
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  },
  daily_quota_exceeded: {
    status: 429,
    title: 'Daily quota used up',
    meaning: 'The calls of this UTC day are used up, over all keys of the account.',
    remedy: 'Wait for `resets_at`, or change to a tier with more calls.',
    retry: 'after',
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  },
  too_many_attempts: {
    status: 429,
    title: 'Too many attempts',
    meaning: 'There were too many attempts of this kind from this address or for this user.',
    remedy: 'Try again after `Retry-After`, not before.',
    retry: 'after',
  },
  account_outcome_unknown: {
    status: 503,
    title: 'It is not known whether it was done',
    meaning: 'The database of accounts did not say whether it kept the change.',
    remedy: 'Look whether it was done, as `detail` says, before you send it again.',
    retry: 'check',
  },
  accounts_unavailable: {
    status: 503,
    title: 'Accounts cannot be looked up',
    meaning: 'The database of accounts does not answer; nothing was counted.',
    remedy: 'Send it again after `Retry-After`; sockets that are open go on for a minute.',
    retry: 'after',
  },
} as const satisfies Readonly<Record<string, ProblemType>>;

export type ProblemCode = keyof typeof PROBLEMS;
