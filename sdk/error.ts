/** The action that a caller may take after an error. */
export type Retry =
  /** The same request will fail again. */
  | 'never'
  /** Nothing happened; repeat the request after `retryAfterMs`, or soon. */
  | 'after'
  /** The request may have had its effect; repeating it with the same id is safe. */
  | 'same_id'
  /** The request may have had its effect: check before you repeat it. */
  | 'check';

/** A problem document of the platform (RFC 9457), unchanged. */
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
 * The only error class of the client. `code` is one of the platform's (`key_invalid`,
 * `daily_quota_exceeded`, …) or one of the client's own: `network`, `timeout`, `aborted`,
 * `answer_malformed`, `not_pillole` (another kind of server answers at the address), `key_missing`,
 * `key_malformed`, `auth_failed`
 * (no signature or token could be made), `auth_malformed`, `endpoint_unavailable` (this server lacks the endpoint), `not_configured`,
 * `slow_consumer`, `unreachable`, `already_iterated`, `no_symbols`, `dead`, `connection_lost`.
 */
export class PilloleError extends Error {
  override readonly name = 'PilloleError';
  readonly code: string;
  /** HTTP status; undefined if there was no answer. */
  readonly status: number | undefined;
  readonly retry: Retry;
  /** How long to wait, in ms, if the server said so. */
  readonly retryAfterMs: number | undefined;
  readonly problem: Problem | undefined;
  /** Position from which a stream that ended can resume. */
  readonly position: string | undefined;
  /** WebSocket close code, for errors that end a connection. */
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

  /** The fields of the error; without this method `JSON.stringify` leaves out `message`. */
  toJSON(): PilloleErrorFields {
    const { code, message, status, retry, retryAfterMs, problem, position, closeCode } = this;
    return { code, message, status, retry, retryAfterMs, problem, position, closeCode };
  }
}

/** @returns the error itself if it is a PilloleError, otherwise one that wraps it */
export function asPilloleError(error: unknown, code: string): PilloleError {
  if (error instanceof PilloleError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new PilloleError({ code, message, retry: 'after', cause: error });
}
