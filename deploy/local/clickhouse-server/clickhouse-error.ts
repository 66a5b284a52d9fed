/** Code numbers of ClickHouse that this server raises itself. */
const CODES = {
  BAD_ARGUMENTS: 36,
  NOT_IMPLEMENTED: 48,
  SYNTAX_ERROR: 62,
  QUERY_IS_TOO_LARGE: 223,
  READONLY: 164,
  TOO_MANY_SIMULTANEOUS_QUERIES: 202,
  ACCESS_DENIED: 497,
  AUTHENTICATION_FAILED: 516,
  CANNOT_DECOMPRESS: 271,
} as const;

export type RefusalName = keyof typeof CODES;

/**
 * A refusal or an error of the engine, worded as ClickHouse does, with the HTTP status its own
 * server gives it. `text` is what the client reads.
 */
export class ClickHouseError extends Error {
  override readonly name = 'ClickHouseError';
  readonly code: number;
  readonly status: number;

  constructor(code: number, status: number, text: string) {
    super(text);
    this.code = code;
    this.status = status;
  }
}

/** A refusal by this server. */
export function refusal(name: RefusalName, message: string, status?: number): ClickHouseError {
  const code = CODES[name];
  return new ClickHouseError(
    code,
    status ?? statusOf(code),
    `Code: ${code}. DB::Exception: ${message} (${name})`,
  );
}

/** What the engine threw: its text starts with `Code: N. DB::Exception:`. */
export function engineError(error: unknown): ClickHouseError {
  if (error instanceof ClickHouseError) return error;
  const text = (error instanceof Error ? error.message : String(error)).trim();
  const code = Number(/^(?:.*?)Code: (\d+)/s.exec(text)?.[1] ?? 1002);
  const worded = text.startsWith('Code:')
    ? text
    : `Code: ${code}. DB::Exception: ${text} (UNKNOWN_EXCEPTION)`;
  return new ClickHouseError(code, statusOf(code), worded);
}

const NOT_FOUND = new Set([36, 43, 46, 47, 50, 51, 56, 60, 79, 81, 82, 113, 115]);
const BAD_REQUEST = new Set([6, 25, 26, 27, 32, 33, 38, 41, 42, 53, 62, 69, 70, 72, 131, 190]);
const FORBIDDEN = new Set([164, 192, 193, 497, 516]);

/** As `exceptionCodeToHTTPStatus` in ClickHouse's server/HTTP. */
function statusOf(code: number): number {
  if (code === 36) return 400;
  if (NOT_FOUND.has(code)) return 404;
  if (BAD_REQUEST.has(code)) return 400;
  if (FORBIDDEN.has(code)) return 403;
  if (code === 48) return 501;
  if (code === 159) return 408;
  if (code === 202) return 503;
  if (code === 223) return 413;
  return 500;
}
