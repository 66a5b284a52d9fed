import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ProblemCode } from './problem-catalogue.ts';
import { type ProblemAnswer, type ProblemMembers, problemAnswer } from './problems.ts';

/** After the last answer, a client may continue sending for this long before its socket is cut. */
const LINGER_MS = 1_000;
const LINGER_BYTES_MAX = 1024 * 1024;

/** Writes a problem as the response; `close` ends the connection gently afterwards. */
export function sendProblem(
  response: ServerResponse<IncomingMessage>,
  answer: ProblemAnswer,
  { close = false } = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const socket = response.socket;
  // A response queued behind an earlier one of the same connection has no socket yet.
  if (close && socket !== null) {
    writeLastAnswer(socket, answer);
    response.req.resume();
    return;
  }
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, {
    ...answer.headers,
    'content-length': body.length,
    ...(close ? { connection: 'close' } : {}),
  });
  response.end(body);
}

/**
 * Answers a request that Node's parser refused (its `clientError` event) with a problem. `members`
 * is added to each problem: ingest reports that nothing was stored.
 */
export function answerClientError(
  error: Error & { readonly code?: string },
  stream: Socket,
  members: ProblemMembers = {},
): void {
  // Node stores the response that is being written in this member; its documentation uses it too.
  const socket = stream as Socket & { _httpMessage?: ServerResponse<IncomingMessage> | null };
  if (socket.writableEnded && !socket.destroyed) return; // The last answer is already sent.
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const response = socket._httpMessage ?? undefined;
  if (response === undefined || !(response.req.complete || response.headersSent)) {
    writeLastAnswer(socket, problemAnswer(problemOfClientError(error.code), members));
    return;
  }
  // An earlier request of this connection is still being answered. The client would take this
  // answer for the earlier one, so it is sent afterwards.
  response.once('finish', () => answerClientError(error, stream, members));
}

function problemOfClientError(code: string | undefined): ProblemCode {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout';
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large';
  return 'http_malformed';
}

/**
 * Writes the last answer of a connection. Closing a socket with unread data resets it, and the
 * reset may overtake the answer (RFC 9112 section 9.6). So only the sending half is closed, and
 * further data is discarded, for a bounded time and size.
 */
export function writeLastAnswer(socket: Socket, { status, headers, body }: ProblemAnswer): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const bytes = Buffer.from(body);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}` +
      `content-length: ${bytes.length}\r\ndate: ${new Date().toUTCString()}\r\n` +
      'connection: close\r\n\r\n',
  );
  socket.end(bytes);
  const cut = () => socket.destroy();
  const timer = setTimeout(cut, LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', cut);
  // Detach the parser: the answer to a further request could not be sent.
  socket.removeAllListeners('data');
  const readMax = socket.bytesRead + LINGER_BYTES_MAX;
  socket.on('data', () => {
    if (socket.bytesRead > readMax) cut();
  });
  socket.resume();
}
