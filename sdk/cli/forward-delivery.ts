import http from 'node:http';
import https from 'node:https';

/** The answer of an application. */
export interface AppAnswer {
  readonly status: number;
  readonly headers: http.OutgoingHttpHeaders;
  readonly body: Buffer;
}

/** As long as the platform waits for an answer. */
const APP_TIMEOUT_MS = 15_000;
/** Longer answers are refused. */
const ANSWER_BYTES_MAX = 1_048_576;

/** Headers of one connection, not of the message (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  ...['upgrade', 'host', 'content-length', 'expect'],
]);

/**
 * Forwards a delivery: the same bytes and the same headers, except for those of the connection.
 * Redirects are not followed, as the platform follows none.
 * @throws Error with a message that says what to do
 */
export function forwardDelivery(
  url: URL,
  delivery: http.IncomingMessage,
  body: Buffer,
  signal: AbortSignal,
): Promise<AppAnswer> {
  const { request } = url.protocol === 'https:' ? https : http;
  const headers = { ...endToEnd(delivery.headers), 'content-length': body.length };
  return new Promise((resolve, reject) => {
    const fail = (text: string) => reject(new Error(`${text} (--forward-to ${url.href})`));
    const timeout = AbortSignal.timeout(APP_TIMEOUT_MS);
    const both = AbortSignal.any([signal, timeout]);
    const asking = request(url, { method: 'POST', headers, signal: both }, (answer) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes <= ANSWER_BYTES_MAX) return;
        fail(
          'Your application answered with more than 1 MiB: a status and a few bytes are enough.',
        );
        answer.destroy();
      });
      answer.on('error', () =>
        fail(
          `Your application closed the connection before the end of its answer${timedOut(timeout)}.`,
        ),
      );
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 502,
          headers: endToEnd(answer.headers),
          body: Buffer.concat(chunks),
        }),
      );
    });
    asking.on('error', (error: NodeJS.ErrnoException) => {
      if (timeout.aborted)
        fail('Your application did not answer within 15 s: answer first, then work.');
      else fail(`Your application does not answer: ${error.code ?? error.message}. Is it running?`);
    });
    asking.end(body);
  });
}

function timedOut(timeout: AbortSignal): string {
  return timeout.aborted ? ': 15 s had passed' : '';
}

function endToEnd(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}
