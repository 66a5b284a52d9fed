/** What a client may do after a problem: contract, as the codes are. */
export type Retry =
  /** The same request will fail again. */
  | 'never'
  /** Nothing happened; send it again after `retry_after_s`. */
  | 'after'
  /** It may have happened; sending the same id again is safe. */
  | 'same_id';

/** One kind of problem (RFC 9457), as the reference page and the answers tell it. */
export interface ProblemType {
  readonly status: number;
  readonly title: string;
  readonly meaning: string;
  readonly remedy: string;
  readonly retry: Retry;
  /** Absolute `type`, where a registry has one; else it is our page of the problem. */
  readonly type?: string;
}

/** Every problem an HTTP answer of ours may carry. Codes are contract: never renamed. */
export const PROBLEMS = {
  pill_invalid: {
    status: 400,
    title: 'The pill was refused',
    meaning: 'The body is not a pill. `errors` lists every fault with its JSON pointer.',
    remedy: 'Cure each fault as its `detail` says, then send it again.',
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
    title: 'Not an HTTP request that we read',
    meaning: 'The request is malformed or ambiguous, for example by two Host headers.',
    remedy: 'Use an ordinary HTTP/1.1 client.',
    retry: 'never',
  },
  credential_missing: {
    status: 401,
    title: 'A generator credential is required',
    meaning: 'There is no Authorization header of the form `Bearer gen_…`.',
    remedy: 'Send the generator token that the operator gave you.',
    retry: 'never',
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
    remedy: 'Compare the path with the documentation.',
    retry: 'never',
  },
  method_not_allowed: {
    status: 405,
    title: 'Not with this method',
    meaning: 'The path exists, the method does not. `Allow` names those that do.',
    remedy: 'Use a method that `Allow` names.',
    retry: 'never',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    meaning: 'Headers or body were not complete in time.',
    remedy: 'Send the request at once, in one piece.',
    retry: 'after',
  },
  id_conflict: {
    status: 409,
    title: 'This id is taken by another pill',
    meaning: 'A pill with this symbol and id, but with other content, was stored before.',
    remedy: 'Choose a new id; a stored pill is never changed.',
    retry: 'never',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    meaning: 'The body is over the limit of this endpoint; the connection is closed.',
    remedy: 'Send one pill, or split the batch.',
    retry: 'never',
  },
  media_type_unsupported: {
    status: 415,
    title: 'Not a media type that we read',
    meaning: 'Content-Type or Content-Encoding is not one of those in `detail`.',
    remedy: 'Send uncompressed `application/json`.',
    retry: 'never',
  },
  expectation_failed: {
    status: 417,
    title: 'Not an expectation that we meet',
    meaning: 'The Expect header asks for something other than 100-continue.',
    remedy: 'Leave the Expect header away.',
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
    remedy: 'Send only the headers that are needed.',
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
    remedy: 'Take a new position from any answer, and fill what lies between from history.',
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
    remedy: 'Send it again after `Retry-After`; check that the position is not made up.',
    retry: 'after',
  },
  overloaded: {
    status: 503,
    title: 'Too much at once',
    meaning: 'As much is in flight as this process takes. Nothing of this request was stored.',
    remedy: 'Send it again after `Retry-After`.',
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
    remedy: 'Ask the operator; sending it again soon does not help.',
    retry: 'never',
  },
  body_invalid: {
    status: 400,
    title: 'The body was refused',
    meaning: 'The body is not the JSON document of this address. `errors` lists every fault.',
    remedy: 'Cure each fault at its JSON pointer, then send it again.',
    retry: 'never',
  },
  token_invalid: {
    status: 400,
    title: 'The link is no longer good',
    meaning: 'The token from the mail is unknown, used or too old.',
    remedy: 'Ask for a new mail.',
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
    meaning: 'The `X-API-Key` header is missing, malformed, unknown, revoked or expired.',
    remedy: 'Send a key of the account, in the header and never in the address.',
    retry: 'never',
  },
  session_required: {
    status: 401,
    title: 'Sign in first',
    meaning: 'This address takes a signed-in session alone: no API key opens it.',
    remedy: 'Sign in at POST /api/session, and send its cookie.',
    retry: 'never',
  },
  sign_in_refused: {
    status: 401,
    title: 'E-mail address or password is wrong',
    meaning: 'No user has this address with this password.',
    remedy: 'Correct them, or ask for a new password at POST /api/password/reset.',
    retry: 'never',
  },
  email_unverified: {
    status: 403,
    title: 'The e-mail address is not verified',
    meaning: 'The account cannot be used before its address is known to be yours.',
    remedy: 'Open the link of the mail that we sent, or ask for another one.',
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
    title: 'Not from this address',
    meaning: 'The key may be used from the networks of its allow-list alone.',
    remedy: 'Call from one of them, or change the list of the key.',
    retry: 'never',
  },
  scope_missing: {
    status: 403,
    title: 'The key was not made for this',
    meaning: 'The key lacks the scope in `needs`.',
    remedy: 'Use a key with this scope, or make one.',
    retry: 'never',
  },
  subscription_required: {
    status: 403,
    title: 'A subscription is required',
    meaning: 'The account has no subscription in force.',
    remedy: 'Subscribe to a tier, then call again.',
    retry: 'never',
  },
  account_suspended: {
    status: 403,
    title: 'The account is suspended',
    meaning: 'It was suspended by the operator, closed, or a payment is due for over 7 days.',
    remedy: 'Look at GET /api/account for the reason; pay, or write to support.',
    retry: 'never',
  },
  tier_too_low: {
    status: 403,
    title: 'Not in this tier',
    meaning: 'Another tier has what was asked for; `needs` names it.',
    remedy: 'Change to the tier that `needs` names.',
    retry: 'never',
  },
  object_not_found: {
    status: 404,
    title: 'No such object',
    meaning: 'The account has no object of this id.',
    remedy: 'List the objects and take an id from there.',
    retry: 'never',
  },
  key_limit: {
    status: 409,
    title: 'No room for another key',
    meaning: 'The account has as many live keys as an account may have.',
    remedy: 'Revoke a key that is not used any more.',
    retry: 'never',
  },
  state_conflict: {
    status: 409,
    title: 'Not in this state',
    meaning: 'What was asked for does not fit the state that the object is in.',
    remedy: 'Read the object again, and see `detail`.',
    retry: 'never',
  },
  rate_limited: {
    status: 429,
    title: 'Too many calls a second',
    meaning: 'The burst limit of the account is used up at this process.',
    remedy: 'Send it again after `Retry-After`, and spread the calls.',
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
    remedy: 'Try again after `Retry-After`.',
    retry: 'after',
  },
  accounts_unavailable: {
    status: 503,
    title: 'Accounts cannot be looked up',
    meaning: 'The database of accounts does not answer; nothing was counted.',
    remedy: 'Send it again after `Retry-After`. Open sockets go on for a minute.',
    retry: 'after',
  },
} as const satisfies Readonly<Record<string, ProblemType>>;

export type ProblemCode = keyof typeof PROBLEMS;
