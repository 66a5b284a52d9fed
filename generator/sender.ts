import type { BackoffOptions } from '../lib/timing/backoff.ts';
import type { Pill } from '../schemas/pill.ts';

/** A pill that was not accepted; `index` is its index in the call. */
export interface NotOk {
  readonly index: number;
  readonly reason: string;
}

/** Outcome of the pills of one call. */
export interface SendResult {
  /** Stored by this call. */
  readonly ok: number;
  /** Stored before, with the same content. */
  readonly replayed: number;
  /** Invalid; another attempt cannot succeed. */
  readonly refused: readonly NotOk[];
  /** Not acknowledged after all attempts: sending them again with the same ids is safe. */
  readonly unknown: readonly NotOk[];
}

/** Sends pills to the service. */
export interface Sender {
  /**
   * Sends pills in order, with retries under the same ids where these can succeed.
   * @throws SendError when neither a retry nor another pill can succeed (e.g. a wrong address)
   */
  send(pills: readonly Pill[]): Promise<SendResult>;
  close(): Promise<void>;
}

/** The sender is misconfigured; the message says how. */
export class SendError extends Error {
  override readonly name = 'SendError';
}

export interface RetryPolicy extends BackoffOptions {
  /** Attempts of one call, the first one included. */
  readonly triesMax: number;
  /** When aborted, no further retries are made. */
  readonly signal: AbortSignal;
  /** Called before the wait, with the reason of the retry. */
  readonly onRetry?: (reason: string, attempt: number, waitMs: number) => void;
}

/** Ten attempts wait 23 s on average: longer than a restart of ingest or of a local broker. */
export const RETRY_DEFAULTS = { triesMax: 10, firstMs: 200, maxMs: 10_000 } as const;

/** A server's `Retry-After` is respected up to this wait. */
export const RETRY_AFTER_MAX_MS = 30_000;
