import type { IncomingMessage, ServerResponse } from 'node:http';
import { nowMicros } from '../../lib/timing/clock.ts';
import type { Fault } from '../../schemas/fault.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { Credentials } from '../http/generator-credentials.ts';
import { isIdentityEncoding } from '../http/media-type.ts';
import { type OpenRule, openServerRefusal } from '../http/open-server.ts';
import { PROBLEMS, type ProblemCode } from '../http/problem-catalogue.ts';
import { type ProblemMembers, problemAnswer } from '../http/problems.ts';
import { sendProblem } from '../http/raw-answers.ts';
import { isAmbiguous } from '../http/server.ts';
import { answers } from './answers.ts';
import { readDryRun } from './dry-run.ts';
import type { Intake } from './intake.ts';
import { HTTP_LIMITS, INGEST_LIMITS } from './limits.ts';
import { countRequest } from './metrics.ts';
import { refusals } from './refusals.ts';

export type Response = ServerResponse<IncomingMessage>;

/** A request that may be refused. */
export interface Refusable {
  readonly response: Response;
  /** Undefined while the generator is not known. */
  readonly source?: string;
  /** A dry run, which is neither stored nor counted. */
  readonly isDryRun?: boolean;
  readonly body?: Buffer;
  /** The pill that the request carries, once it is parsed. */
  readonly pillId?: string;
}

/** A request that is complete, within bounds, and from a known generator. */
export interface Received extends Required<Omit<Refusable, 'pillId'>> {
  readonly contentType: string;
  /** When the request was complete: by the clock, and by `performance.now()`. */
  readonly receivedAt: Micros;
  readonly at: number;
}

/** The parts that differ between the routes. */
export interface IngestRoute {
  readonly path: string;
  readonly bytesMax: number;
  readonly isType: (contentType: string | undefined) => boolean;
  /** The accepted media types, as text. */
  readonly types: string;
  /** Answers. The request counts as in flight until the returned promise settles. */
  readonly handle: (received: Received, intake: Intake) => Promise<void> | undefined;
}

export type Receiver = ReturnType<typeof createReceiver>;

/** Who may send: generators with a credential, or anyone within the rule. */
export type Senders =
  | { readonly credentials: Credentials; readonly openRule?: undefined }
  | { readonly credentials?: undefined; readonly openRule: OpenRule };

/**
 * Creates the entry to the routes: it checks the head of a request, then reads its body.
 * @param intake is undefined until the log is reached
 */
export function createReceiver(
  senders: Senders,
  intake: () => Intake | undefined,
  onError: (error: unknown) => void,
) {
  let requests = 0;
  let bytes = 0;

  const receive = (route: IngestRoute, request: IncomingMessage, response: Response): undefined => {
    // This request arrived after the last answer of its connection.
    if (request.socket.writableEnded) return;
    const head = checkHead(route, request, senders);
    if ('code' in head) return refuse({ response, ...head }, head.code, head.members, head);
    const { source, contentType, isDryRun, length } = head;
    const asker = { response, source, isDryRun };
    if (requests >= INGEST_LIMITS.requestsMax || bytes + length > INGEST_LIMITS.bodyBytesMax) {
      return refuse(asker, 'overloaded', { retry_after_s: 1 });
    }
    requests += 1;
    bytes += length;
    let isOpen = true;
    const release = () => {
      if (!isOpen) return;
      isOpen = false;
      requests -= 1;
      bytes -= length;
    };
    readBody(request, route.bytesMax, (body) => {
      if (body === 'gone') return release();
      if (body === 'too_large') {
        release();
        const { code, members } = tooLarge(route);
        return refuse(asker, code, members, { close: true });
      }
      try {
        const receivedAt = nowMicros();
        const at = performance.now();
        const received = { response, contentType, isDryRun, body, source, receivedAt, at };
        const target = intake();
        const handled =
          target === undefined ? refuseStarting(received) : route.handle(received, target);
        if (handled === undefined) release();
        else handled.then(release, failed);
      } catch (error) {
        failed(error);
      }
    });
    // No known input causes this. Whether the log has the pill is unknown.
    const failed = (error: unknown) => {
      release();
      onError(error);
      refuse(asker, 'log_unavailable', { stored: 'unknown', retry_after_s: 1 });
    };
  };
  return { receive, requestsInFlight: () => requests, bodyBytes: () => bytes };
}

function refuseStarting(received: Received): undefined {
  const detail = 'This process has not connected to the log yet.';
  return refuse(received, 'log_unavailable', { detail, retry_after_s: 1 });
}

type Head = Pick<Received, 'source' | 'isDryRun' | 'contentType'> & { readonly length: number };

interface HeadRefusal {
  readonly source?: string;
  readonly isDryRun?: boolean;
  readonly code: ProblemCode;
  readonly members?: ProblemMembers;
  readonly close?: boolean;
}

/**
 * Checks a request by its head alone, in this order.
 * @returns `length`: the bytes of the body as announced; for a chunked body, the limit
 */
function checkHead(
  route: IngestRoute,
  { headers, rawHeaders, httpVersion, url = '' }: IncomingMessage,
  { credentials, openRule }: Senders,
): Head | HeadRefusal {
  if (rawHeaders.length > HTTP_LIMITS.headersMax * 2) {
    return { code: 'headers_too_large', close: true };
  }
  if (isAmbiguous(rawHeaders, httpVersion)) return { code: 'http_malformed', close: true };
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return { ...UNCOMPRESSED_ONLY, close: true };
  }
  let source = 'http';
  if (credentials === undefined) {
    const refusal = openServerRefusal(headers, openRule);
    if (refusal !== undefined) return { code: refusal[0], members: refusal[1] };
  } else {
    const isName = (text: string, i: number) =>
      i % 2 === 0 && text.toLowerCase() === 'authorization';
    const header = rawHeaders.filter(isName).length > 1 ? '' : headers.authorization;
    const verdict = credentials.check(header, nowMicros());
    if (verdict.kind !== 'known') return { code: `credential_${verdict.kind}` };
    source = verdict.name;
  }
  const isDryRun = url.length === route.path.length ? false : readDryRun(url);
  if (typeof isDryRun === 'object') {
    return { source, code: 'parameter_invalid', members: { errors: [isDryRun] } };
  }
  const contentType = headers['content-type'];
  if (contentType === undefined || !route.isType(contentType)) {
    const members = { detail: `Send ${route.types}.` };
    return { source, isDryRun, code: 'media_type_unsupported', members };
  }
  if (!isIdentityEncoding(headers['content-encoding'])) {
    return { source, isDryRun, ...UNCOMPRESSED_ONLY };
  }
  const announced = headers['content-length'];
  const length = announced === undefined ? route.bytesMax : Number(announced);
  if (length > route.bytesMax) return { source, isDryRun, ...tooLarge(route), close: true };
  return { source, isDryRun, contentType, length };
}

const UNCOMPRESSED_ONLY: HeadRefusal = {
  code: 'media_type_unsupported',
  members: { detail: 'Send the body uncompressed.' },
};

function tooLarge({ bytesMax }: IngestRoute): HeadRefusal {
  const detail = `The limit is ${bytesMax} bytes.`;
  return { code: 'body_too_large', members: { detail, limit_bytes: bytesMax } };
}

/**
 * Answers with a problem; `stored` is `no` unless `members` says otherwise.
 * @param more.pills how many pills are refused; 1 by default
 */
export function refuse(
  asker: Refusable,
  code: ProblemCode,
  members: ProblemMembers = {},
  more: { readonly close?: boolean; readonly pills?: number } = {},
): undefined {
  countRequest(code);
  const { response, source = '', isDryRun, body } = asker;
  if (isDryRun !== true) {
    const { errors = [], detail = PROBLEMS[code].title } = members;
    const faults = code === 'parameter_invalid' ? [] : (errors as readonly Fault[]);
    const of = { source, code, at: nowMicros(), faults, detail, pills: more.pills ?? 1 };
    refusals.note(body === undefined ? of : { ...of, body: () => body });
  }
  const headers: Record<string, string> =
    code === 'credential_invalid' ? { 'www-authenticate': 'Bearer realm="pillole ingest"' } : {};
  const answer = problemAnswer(code, { stored: 'no', ...members }, headers);
  const { status, requestId } = answer;
  const pill = asker.pillId;
  answers.note(status, () => ({ request_id: requestId, code, source, pill_id: pill }));
  sendProblem(response, answer, { close: more.close === true });
}

function readBody(
  request: IncomingMessage,
  bytesMax: number,
  done: (body: Buffer | 'too_large' | 'gone') => void,
): void {
  let chunks: Buffer[] = [];
  let length = 0;
  let isDone = false;
  const finish = (body: Buffer | 'too_large' | 'gone') => {
    if (isDone) return;
    isDone = true;
    chunks = [];
    done(body);
  };
  request.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > bytesMax) finish('too_large');
    else chunks.push(chunk);
  });
  request.on('end', () => finish(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
  // Without a listener, a broken connection would be an uncaught error. The event precedes the end
  // of a body that is cut off, and follows the end of a complete one.
  request.on('error', () => finish('gone'));
}
