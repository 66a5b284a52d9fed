/** ClickHouse error codes that this server raises itself. */
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

/**
 * A refusal, or an error of the engine, in the wording and with the HTTP status of ClickHouse's own
 * server. The client reads `text`.
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
export function refusal(
  name: keyof typeof CODES,
  message: string,
  status?: number,
): ClickHouseError {
  const code = CODES[name];
  return new ClickHouseError(
    code,
    status ?? statusOf(code),
    `Code: ${code}. DB::Exception: ${message} (${name})`,
  );
}

/**
 * Converts an error of the engine, whose text starts with `Code: N. DB::Exception:`.
 * @param role shown instead of the engine's only user
 */
export function engineError(error: unknown, role = 'default'): ClickHouseError {
  if (error instanceof ClickHouseError) return error;
  const message = (error instanceof Error ? error.message : String(error)).trim();
  const text = message.replace('DB::Exception: default: ', () => `DB::Exception: ${role}: `);
  const code = Number(/^(?:.*?)Code: (\d+)/s.exec(text)?.[1] ?? 1002);
  const worded = text.startsWith('Code:')
    ? text
    : `Code: ${code}. DB::Exception: ${text} (UNKNOWN_EXCEPTION)`;
  return new ClickHouseError(code, statusOf(code), worded);
}

/** The same error without the statement that the server itself has run. */
export function withoutScope({ code, status, message }: ClickHouseError) {
  return new ClickHouseError(
    code,
    status,
    message.replace(/: In scope SELECT .*\. (?=\([A-Z_]+\))/s, '. '),
  );
}

/** The same error with a sentence after its message, before the name of the error. */
export function withHint({ code, status, message }: ClickHouseError, hint: string) {
  const hinted = message.replace(
    / \([A-Z_]+\)(?: \(version [^()]*\))?\s*$/,
    (name) => ` ${hint}${name}`,
  );
  return new ClickHouseError(code, status, hinted);
}

/** Like `exceptionCodeToHTTPStatus` in ClickHouse's server/HTTP. */
const CODES_BY_STATUS: Readonly<Record<number, readonly number[]>> = {
  400: [6, 25, 26, 27, 32, 33, 36, 38, 41, 42, 53, 62, 69, 70, 72, 131, 190],
  403: [164, 192, 193, 497, 516],
  404: [43, 46, 47, 50, 51, 56, 60, 79, 81, 82, 113, 115],
  408: [159],
  413: [223],
  501: [48],
  503: [202],
};

function statusOf(code: number): number {
  const found = Object.entries(CODES_BY_STATUS).find(([, codes]) => codes.includes(code));
  return Number(found?.[0] ?? 500);
}
