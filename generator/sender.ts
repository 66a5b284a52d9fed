import type { BackoffOptions } from '../lib/backoff.ts';
import type { Pill } from '../schemas/pill.ts';

/** A pill that was not accepted; `index` is its place in the call. */
export interface NotOk {
  readonly index: number;
  readonly reason: string;
}

/** What became of the pills of one call. */
export interface SendResult {
  /** Stored by this call. */
  readonly ok: number;
  /** Known to the service already, with the same content. */
  readonly replayed: number;
  /** Will never be accepted as they are. */
  readonly refused: readonly NotOk[];
  /** Not acknowledged after all tries: sending them again with the same ids is safe. */
  readonly unknown: readonly NotOk[];
}

/** A way into the service. */
export interface Sender {
  /**
   * Sends pills in their order, trying again with the same ids where that can help.
   * @throws SendError when neither another try nor another pill can work (wrong address, say).
   */
  send(pills: readonly Pill[]): Promise<SendResult>;
  close(): Promise<void>;
}

/** Sending is set up wrongly; the message says how. */
export class SendError extends Error {
  override readonly name = 'SendError';
}

export interface RetryPolicy extends BackoffOptions {
  /** Tries of one call, the first one included. */
  readonly triesMax: number;
  /** Aborted: no further try. */
  readonly signal: AbortSignal;
  /** Hears why a call must be repeated, before the wait. */
  readonly onRetry?: (reason: string, attempt: number, waitMs: number) => void;
}

/** Ten tries wait 23 s on average: longer than a restart of ingest or of a local broker. */
export const RETRY_DEFAULTS = { triesMax: 10, firstMs: 200, maxMs: 10_000 } as const;

/** A server's `Retry-After` is followed up to this. */
export const RETRY_AFTER_MAX_MS = 30_000;
