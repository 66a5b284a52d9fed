/** What one may do after an error. */
export type Retry =
  /** The same again will fail again. */
  | 'never'
  /** Nothing happened; again after `retryAfterMs`, or soon. */
  | 'after'
  /** It may have happened; the same id again is safe. */
  | 'same_id'
  /** It may have happened: look before you do it again. */
  | 'check';

/** A problem document of the platform (RFC 9457), as it came. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly retry?: Retry;
  readonly detail?: string;
  readonly retry_after_s?: number;
  readonly request_id?: string;
  readonly [member: string]: unknown;
}

export interface PilloleErrorFields {
  readonly code: string;
  readonly message: string;
  readonly status?: number | undefined;
  readonly retry?: Retry | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly problem?: Problem | undefined;
  readonly position?: string | undefined;
  readonly closeCode?: number | undefined;
  readonly cause?: unknown;
}

/**
 * The one class of errors. `code` is the platform's (`key_invalid`, `daily_quota_exceeded`, …), or
 * one of the client's own: `network`, `timeout`, `aborted`, `answer_malformed`,
 * `endpoint_unavailable` (this server does not have it), `not_configured`, `slow_consumer`, `unreachable`,
 * `already_iterated`, `no_symbols`, `dead`, `connection_lost`.
 */
export class PilloleError extends Error {
  override readonly name = 'PilloleError';
  readonly code: string;
  /** HTTP status; undefined where there was no answer. */
  readonly status: number | undefined;
  readonly retry: Retry;
  /** How long to wait, in ms, where the server said so. */
  readonly retryAfterMs: number | undefined;
  readonly problem: Problem | undefined;
  /** Where a stream that ended can be resumed. */
  readonly position: string | undefined;
  /** WebSocket close code, of errors that end a connection. */
  readonly closeCode: number | undefined;

  constructor(fields: PilloleErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.code = fields.code;
    this.status = fields.status;
    this.retry = fields.retry ?? 'never';
    this.retryAfterMs = fields.retryAfterMs;
    this.problem = fields.problem;
    this.position = fields.position;
    this.closeCode = fields.closeCode;
  }
}

/** @returns the error itself if it is one of ours, else one that wraps it */
export function asPilloleError(error: unknown, code: string): PilloleError {
  if (error instanceof PilloleError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new PilloleError({ code, message, retry: 'after', cause: error });
}
