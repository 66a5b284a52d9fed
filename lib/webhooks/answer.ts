import type { Dispatcher } from 'undici';

/** Of a body this much is read; a longer one ends the connection, and counts by its status. */
const BODY_BYTES_MAX = 16_384;
/** Of a body this much is kept. */
const KEPT_BYTES = 1_024;
const RETRY_AFTER_MAX_S = 86_400;

export interface Answer {
  readonly status: number;
  readonly retryAfterS: number | undefined;
  readonly answer: string;
  /** Whether the connection may serve the next message. */
  readonly isWhole: boolean;
}

/** Reads an answer as far as its bound. @throws what the connection says */
export async function readAnswer(response: Dispatcher.ResponseData): Promise<Answer> {
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
    retryAfterS: retryAfterSeconds(
      Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
      Date.now(),
    ),
    answer: answerText(Buffer.concat(chunks).subarray(0, KEPT_BYTES)),
    isWhole,
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
 * Bytes as one line that tables, logs and pages can hold: what is not UTF-8 becomes U+FFFD, a
 * character that the cut went through is left out, control characters become spaces, and those that
 * turn the direction of writing are dropped.
 */
export function answerText(bytes: Buffer): string {
  const text = new TextDecoder().decode(bytes, { stream: true });
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, ' ').replace(/\p{Bidi_Control}/gu, '');
}
