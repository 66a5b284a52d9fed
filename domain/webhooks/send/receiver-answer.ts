import type { Dispatcher } from 'undici';

/** How much of a body is read; a longer one ends the connection, and counts by its status. */
const BODY_BYTES_MAX = 16_384;
/** How much of a body is kept. */
const KEPT_BYTES = 1_024;
const RETRY_AFTER_MAX_S = 86_400;

export interface ReceiverAnswer {
  readonly status: number;
  /** From Retry-After: 0 to 86,400. */
  readonly retryAfterS: number | undefined;
  /** First 1,024 bytes of the body as one line of text, without control characters. */
  readonly answer: string;
  /** Whether the connection may serve the next message. */
  readonly isComplete: boolean;
}

/** Reads an answer up to its bound. @throws any connection error */
export async function readAnswer(response: Dispatcher.ResponseData): Promise<ReceiverAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isWhole = true;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    isWhole = bytes <= BODY_BYTES_MAX;
    if (!isWhole) break;
  }
  const retryAfter = response.headers['retry-after'];
  return {
    status: response.statusCode,
    retryAfterS: retryAfterSeconds([retryAfter].flat()[0], Date.now()),
    answer: answerText(Buffer.concat(chunks).subarray(0, KEPT_BYTES)),
    isComplete: isWhole,
  };
}

/**
 * RFC 9110, 10.2.3: seconds, or an HTTP date. A day at most; 0 for a date that has passed;
 * undefined for anything else.
 */
export function retryAfterSeconds(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? '';
  const isDate = /^[A-Z][a-z]{2,8},? .+ (?:GMT|\d{4})$/.test(value);
  const seconds = /^\d+$/.test(value)
    ? Number(value)
    : Math.ceil(((isDate ? Date.parse(value) : Number.NaN) - nowMs) / 1_000);
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), RETRY_AFTER_MAX_S);
}

/**
 * Bytes as one line that tables, logs and pages can hold: invalid UTF-8 becomes U+FFFD, a character
 * that was cut in two is left out, control characters become spaces, and characters that change the
 * direction of writing are dropped.
 */
export function answerText(bytes: Buffer): string {
  const text = new TextDecoder().decode(bytes, { stream: true });
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ').replace(/\p{Bidi_Control}/gu, '');
}
