import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ProblemCode } from './problem-catalogue.ts';
import { type ProblemAnswer, type ProblemMembers, problemAnswer } from './problems.ts';

/** After the last answer a client may go on sending for this long before its socket is cut. */
const LINGER_MS = 1_000;
const LINGER_BYTES_MAX = 1024 * 1024;

/** Node keeps the response that is being written on the socket; its docs use it in an example. */
type HttpSocket = Socket & {
  readonly _httpMessage?: ServerResponse<IncomingMessage> | null;
};

/** Writes a problem as the response; `close` ends the connection after it, gently. */
export function sendProblem(
  response: ServerResponse<IncomingMessage>,
  answer: ProblemAnswer,
  { close = false } = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const socket = response.socket;
  // A response that waits behind an earlier one of the same connection has no socket yet.
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
 * Answers what Node's parser refused (its `clientError` event) with a problem. `members` is added
 * to each: ingest tells that nothing was stored.
 */
export function answerClientError(
  error: Error & { readonly code?: string },
  stream: Socket,
  members: ProblemMembers = {},
): void {
  const socket = stream as HttpSocket;
  if (socket.writableEnded && !socket.destroyed) return; // has its last answer already
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const response = socket._httpMessage ?? undefined;
  if (response === undefined || !(response.req.complete || response.headersSent)) {
    writeLastAnswer(socket, problemAnswer(problemOfClientError(error.code), members));
    return;
  }
  // An earlier request of this connection is still being answered, and this answer must not be
  // taken for its own: look again after it.
  response.once('finish', () => answerClientError(error, stream, members));
}

function problemOfClientError(code: string | undefined): ProblemCode {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout';
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large';
  return 'http_malformed';
}

/**
 * Writes the last answer of a connection. A socket that is closed with unread data in it is reset,
 * and the reset may overtake the answer (RFC 9112 section 9.6): so only the sending half is closed;
 * what still comes is thrown away, for a bounded time and size.
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
  // The parser sees nothing more: a request that follows would be answered into the dark.
  socket.removeAllListeners('data');
  const readMax = socket.bytesRead + LINGER_BYTES_MAX;
  socket.on('data', () => {
    if (socket.bytesRead > readMax) cut();
  });
  socket.resume();
}
