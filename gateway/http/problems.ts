import { randomBytes } from 'node:crypto';

/** What a client may do after a problem: contract, as the codes are. */
export type Retry =
  /** The same request will fail again. */
  | 'never'
  /** Nothing happened; send it again after `retry_after_s`. */
  | 'after'
  /** It may have happened; sending the same id again is safe. */
  | 'same_id';

/** Whether what was sent is in the log now. */
export type Stored = 'no' | 'unknown';

/** One kind of problem (RFC 9457), as the reference page and the answers tell it. */
export interface ProblemType {
  readonly status: number;
  readonly title: string;
  readonly meaning: string;
  readonly remedy: string;
  readonly retry: Retry;
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
} as const satisfies Readonly<Record<string, ProblemType>>;

export type ProblemCode = keyof typeof PROBLEMS;

/** What one occurrence adds to its type; undefined members are left away. */
export interface ProblemMembers {
  readonly stored?: Stored;
  readonly retry_after_s?: number;
  readonly detail?: string;
  readonly errors?: readonly unknown[];
  readonly [member: string]: unknown;
}

/** A problem as an answer: the caller adds nothing but where it goes. */
export interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Version of the interface, on every answer. */
export const API_VERSION = '1.0';
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/** Renders one occurrence of a problem, under a fresh request id. */
export function problemAnswer(
  code: ProblemCode,
  members: ProblemMembers = {},
  headers: Readonly<Record<string, string>> = {},
): ProblemAnswer {
  const { status, title, retry } = PROBLEMS[code];
  const { stored, ...rest } = members;
  const body = JSON.stringify({
    type: problemPath(code),
    title,
    status,
    code,
    stored,
    retry,
    ...rest,
    request_id: newRequestId(),
  });
  const retryAfter = members.retry_after_s;
  return {
    status,
    body,
    headers: {
      'content-type': PROBLEM_MEDIA_TYPE,
      'cache-control': 'no-store',
      'api-version': API_VERSION,
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
      ...headers,
    },
  };
}

/** Where a problem is explained, as a relative reference: `type` of every answer. */
export function problemPath(code: ProblemCode): string {
  return `/problems/${code.replaceAll('_', '-')}`;
}

function newRequestId(): string {
  return `r_${randomBytes(8).toString('hex')}`;
}
