import { problemTypes } from './problem-type.ts';

/** Problems of the request itself or of the process, on every server. */
export const HTTP_PROBLEMS = problemTypes({
  http_malformed: {
    status: 400,
    title: 'Not a well-formed HTTP request',
    meaning: 'The request is malformed or ambiguous: for example, it has two Host headers.',
    remedy: 'Use an ordinary HTTP/1.1 client, and check the headers that you set.',
  },
  parameter_invalid: {
    status: 400,
    title: 'A parameter was refused',
    meaning: 'A parameter is unknown, repeated or malformed. `errors` lists every fault.',
    remedy: 'Correct the parameters that `errors` names.',
  },
  body_invalid: {
    status: 400,
    title: 'The body was refused',
    meaning:
      'The body is not the JSON document that this endpoint expects. `errors` lists every fault.',
    remedy: 'Correct each fault at its JSON pointer in `errors`, then send the request again.',
  },
  local_only: {
    status: 403,
    title: 'Only programs and pages of this machine are served',
    meaning:
      'The server is open to this machine, so it refuses requests to another host name (which ' +
      'DNS may lead here) and of foreign web pages. `detail` names the header.',
    remedy:
      'Use http://localhost or http://127.0.0.1. Operators who serve other machines set the public ' +
      'addresses, e.g. PUBLIC_URL and INGEST_URL.',
  },
  proxy_refused: {
    status: 403,
    title: 'Requests through a proxy are refused',
    meaning:
      'The server is open to this machine, or without credentials, and a header shows that a proxy ' +
      'forwarded the request. `detail` names the header.',
    remedy:
      'Send the request without a proxy. Operators behind a proxy set the public addresses, e.g. ' +
      'PUBLIC_URL, and give ingest a file of credentials in INGEST_CREDENTIALS_FILE.',
  },
  not_found: {
    status: 404,
    title: 'No such address',
    meaning: 'This server has nothing at this path.',
    remedy: 'Compare the path with the reference: GET /docs of the API, or GET /openapi.json.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    meaning: 'The path exists, but not with this method. `Allow` lists the methods it has.',
    remedy: 'Use a method that `Allow` lists.',
  },
  not_acceptable: {
    status: 406,
    title: 'Not available in this format',
    meaning: 'No format of this answer matches `Accept`. `available` lists the formats it has.',
    remedy: 'Send `Accept` with a media type of `available`, or omit it for JSON.',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    meaning: 'The headers or the body did not arrive completely in time.',
    remedy: 'Send the request again, with headers and body in one go.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    meaning: 'The body exceeds the limit of this endpoint; the connection is closed.',
    remedy: 'Send less at a time: split a batch, or shorten the values.',
  },
  media_type_unsupported: {
    status: 415,
    title: 'Media type not supported',
    meaning: 'This endpoint does not accept the Content-Type or Content-Encoding of the request.',
    remedy: 'Send uncompressed JSON with the header Content-Type: application/json.',
  },
  expectation_failed: {
    status: 417,
    title: 'The expectation cannot be met',
    meaning: 'The Expect header asks for something other than 100-continue.',
    remedy: 'Remove the Expect header.',
  },
  upgrade_required: {
    status: 426,
    title: 'This address speaks WebSocket',
    meaning: 'The path is a stream, but the request is not a WebSocket handshake.',
    remedy: 'Connect with a WebSocket client.',
  },
  connection_flood: {
    status: 429,
    title: 'Too many connections are being opened',
    meaning:
      'The process received more handshakes in this second than it accepts, in all or from this address.',
    remedy: 'Connect again after `Retry-After`, with jitter.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    meaning: 'The request has too many headers, or they have too many bytes.',
    remedy: 'Send only the headers that are needed, and no large cookies.',
  },
  not_ready: {
    status: 503,
    title: 'Not ready yet',
    meaning: 'The process has just started and is still reading the log.',
    remedy: 'Send the request again after `Retry-After`, or use another instance.',
  },
  overloaded: {
    status: 503,
    title: 'Overloaded',
    meaning: 'The process is at capacity. Nothing of this request was stored.',
    remedy: 'Send the request again after `Retry-After`; double the wait after each failure.',
  },
});
