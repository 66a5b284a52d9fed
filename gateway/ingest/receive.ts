import type { IncomingMessage, ServerResponse } from 'node:http';
import { nowMicros } from '../../lib/clock.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { isIdentityEncoding } from '../http/media-type.ts';
import type { ProblemCode } from '../http/problem-catalogue.ts';
import { type ProblemMembers, problemAnswer } from '../http/problems.ts';
import { sendProblem } from '../http/raw-answers.ts';
import { isAmbiguous } from '../http/server.ts';
import type { Credentials } from './credentials.ts';
import { HTTP_LIMITS, INGEST_LIMITS } from './limits.ts';
import { countRequest } from './metrics.ts';

export type Response = ServerResponse<IncomingMessage>;

/** A request that may be looked at: whole, in bounds, from a known generator. */
export interface Received {
  readonly response: Response;
  readonly contentType: string;
  readonly body: Buffer;
  readonly source: string;
  /** Our clock and `performance.now()` when the whole request was here. */
  readonly receivedAt: Micros;
  readonly at: number;
}

/** What differs between the endpoints. */
export interface Endpoint {
  readonly bytesMax: number;
  readonly isType: (contentType: string | undefined) => boolean;
  /** Media types that pass, for people. */
  readonly types: string;
  /** Answers; what it returns is waited for, as long as the request counts as in flight. */
  readonly handle: (received: Received) => Promise<void> | undefined;
}

export interface Receiver {
  receive(endpoint: Endpoint, request: IncomingMessage, response: Response): undefined;
  requestsInFlight(): number;
  bodyBytes(): number;
}

/** Creates what stands before the endpoints: checks in this order, then the whole body. */
export function createReceiver(options: {
  readonly credentials: Credentials | undefined;
  readonly onError: (error: unknown) => void;
}): Receiver {
  const { credentials, onError } = options;
  let requests = 0;
  let bytes = 0;

  const receive: Receiver['receive'] = (endpoint, request, response) => {
    // The connection has had its last answer; this came behind it.
    if (request.socket.writableEnded) return;
    const { headers, rawHeaders } = request;
    if (rawHeaders.length > HTTP_LIMITS.headersMax * 2) {
      return refuse(response, 'headers_too_large', {}, true);
    }
    if (isAmbiguous(rawHeaders, request.httpVersion)) {
      return refuse(response, 'http_malformed', {}, true);
    }
    const coding = headers['transfer-encoding'];
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
      return refuse(response, 'media_type_unsupported', { detail: 'Send it uncompressed.' }, true);
    }
    let source = 'http';
    if (credentials !== undefined) {
      const header = countHeader(rawHeaders, 'authorization') > 1 ? '' : headers.authorization;
      const verdict = credentials.check(header, nowMicros());
      if (verdict.kind !== 'known') return refuse(response, `credential_${verdict.kind}`);
      source = verdict.name;
    }
    const contentType = headers['content-type'];
    if (!endpoint.isType(contentType)) {
      return refuse(response, 'media_type_unsupported', { detail: `Send ${endpoint.types}.` });
    }
    if (!isIdentityEncoding(headers['content-encoding'])) {
      return refuse(response, 'media_type_unsupported', { detail: 'Send it uncompressed.' });
    }
    const announced = headers['content-length'];
    const length = announced === undefined ? endpoint.bytesMax : Number(announced);
    if (length > endpoint.bytesMax) return refuse(response, ...tooLarge(endpoint), true);
    if (requests >= INGEST_LIMITS.requestsMax || bytes + length > INGEST_LIMITS.bodyBytesMax) {
      return refuse(response, 'overloaded', { retry_after_s: 1 });
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
    readBody(request, endpoint.bytesMax, (body) => {
      if (body === 'gone') return release();
      if (body === 'too_large') {
        release();
        return refuse(response, ...tooLarge(endpoint), true);
      }
      try {
        const handled = endpoint.handle({
          response,
          contentType: contentType!,
          body,
          source,
          receivedAt: nowMicros(),
          at: performance.now(),
        });
        if (handled === undefined) release();
        else handled.then(release, failed);
      } catch (error) {
        failed(error);
      }
    });
    // Not an answer to any input we know of; what it left in the log is not known.
    const failed = (error: unknown) => {
      release();
      onError(error);
      refuse(response, 'log_unavailable', { stored: 'unknown', retry_after_s: 1 });
    };
  };
  return { receive, requestsInFlight: () => requests, bodyBytes: () => bytes };
}

function tooLarge({ bytesMax }: Endpoint): [ProblemCode, ProblemMembers] {
  return ['body_too_large', { detail: `Limit ${bytesMax} bytes.`, limit_bytes: bytesMax }];
}

/** Answers a problem; nothing was stored unless `members` says otherwise. */
export function refuse(
  response: Response,
  code: ProblemCode,
  members: ProblemMembers = {},
  close = false,
): undefined {
  countRequest(code);
  const headers: Record<string, string> =
    code === 'credential_missing' || code === 'credential_invalid'
      ? { 'www-authenticate': 'Bearer realm="pillole ingest"' }
      : {};
  sendProblem(response, problemAnswer(code, { stored: 'no', ...members }, headers), { close });
}

function readBody(
  request: IncomingMessage,
  bytesMax: number,
  done: (body: Buffer | 'too_large' | 'gone') => void,
): void {
  let first: Buffer | undefined;
  let chunks: Buffer[] | undefined;
  let length = 0;
  let isDone = false;
  request.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > bytesMax) {
      if (isDone) return;
      isDone = true;
      chunks = undefined;
      done('too_large');
    } else if (first === undefined) first = chunk;
    else if (chunks === undefined) chunks = [first, chunk];
    else chunks.push(chunk);
  });
  request.on('end', () => {
    if (isDone) return;
    isDone = true;
    done(chunks === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(chunks, length));
  });
  // Without a listener a broken connection would be an uncaught error. It comes before the end of
  // a body that is cut off, and after that of a whole one.
  request.on('error', () => {
    if (isDone) return;
    isDone = true;
    done('gone');
  });
}

function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() === name) count += 1;
  }
  return count;
}
