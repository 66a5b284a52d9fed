import http from 'node:http';
import https from 'node:https';

/** What an application answered. */
export interface AppAnswer {
  readonly status: number;
  readonly headers: http.OutgoingHttpHeaders;
  readonly body: Buffer;
}

/** As long as the platform waits. */
const APP_TIMEOUT_MS = 15_000;
/** An answer is no longer than this. */
const ANSWER_BYTES_MAX = 1_048_576;

/** They belong to one connection, not to the message (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  ...['upgrade', 'host', 'content-length', 'expect'],
]);

/**
 * Passes a delivery on: the same bytes, the same headers but those of the connection. Redirects
 * are not followed, as the platform follows none.
 * @throws Error with a sentence that says what to do
 */
export function forward(
  url: URL,
  delivery: http.IncomingMessage,
  body: Buffer,
  signal: AbortSignal,
): Promise<AppAnswer> {
  const { request } = url.protocol === 'https:' ? https : http;
  const headers = { ...passed(delivery.headers), 'content-length': body.length };
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
        fail('Your application answered more than 1 MiB: a webhook is answered with a word.');
        answer.destroy();
      });
      answer.on('error', () => fail(`Your application broke off its answer${late(timeout)}.`));
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 502,
          headers: passed(answer.headers),
          body: Buffer.concat(chunks),
        }),
      );
    });
    asking.on('error', (error: NodeJS.ErrnoException) => {
      if (timeout.aborted) fail('Your application did not answer within 15 s: answer, then work.');
      else fail(`Your application does not answer: ${error.code ?? error.message}. Does it run?`);
    });
    asking.end(body);
  });
}

function late(timeout: AbortSignal): string {
  return timeout.aborted ? ': 15 s were over' : '';
}

function passed(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}
