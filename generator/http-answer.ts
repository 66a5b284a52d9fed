import { type Attempt, NO_EFFECT } from './retry.ts';
import { type NotOk, RETRY_AFTER_MAX_MS, SendError } from './sender.ts';

/** The parts of the ingest server's answer that a sender evaluates. */
export interface HttpAnswer {
  readonly status: number;
  readonly replayed: boolean;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

interface Row {
  readonly index: number;
}

const REFUSED: ReadonlySet<number> = new Set([400, 409, 413, 422]);

/** Reads the answer to a single pill. @throws SendError when no further attempt can succeed */
export function readSingleAnswer<R extends Row>(row: R, answer: HttpAnswer): Attempt<R> {
  if (answer.status === 200) {
    return { ...NO_EFFECT, ...(answer.replayed ? { replayed: 1 } : { ok: 1 }) };
  }
  return readFailure([row], answer);
}

/** Reads the answer to several pills; `rows` in the order sent. */
export function readBatchAnswer<R extends Row>(rows: readonly R[], answer: HttpAnswer): Attempt<R> {
  if (answer.status !== 200) return readFailure(rows, answer);
  const body = parseObject(answer.body);
  if (body === undefined) return retry(rows, 'the answer to a batch was not a JSON object', 0);
  const refused: NotOk[] = [];
  const again: R[] = [];
  const results = Array.isArray(body.results) ? (body.results as Record<string, unknown>[]) : [];
  for (const result of results) {
    const row = rows[Number(result.index)];
    if (row === undefined) continue;
    if (result.status === 'refused') {
      refused.push({ index: row.index, reason: reasonOf(result, 'refused') });
    } else if (result.status === 'unknown') again.push(row);
  }
  const reason = again.length === 0 ? '' : `${again.length} pills were not acknowledged`;
  const replayed = Number(body.replayed ?? 0);
  return {
    // Counted from the rows: every row that is not listed was stored, now or before.
    ok: rows.length - refused.length - again.length - replayed,
    replayed,
    refused,
    retry: again,
    reason,
    retryAfterMs: retryAfterMs(answer.retryAfter),
  };
}

/** An attempt without any answer. */
export function noAnswer<R extends Row>(rows: readonly R[], error: unknown): Attempt<R> {
  const { code, message } = error as { code?: string; message?: string };
  return retry(rows, `no answer (${code ?? message ?? String(error)})`, 0);
}

function readFailure<R extends Row>(rows: readonly R[], answer: HttpAnswer): Attempt<R> {
  const { status } = answer;
  const reason = reasonOf(parseObject(answer.body) ?? {}, `HTTP ${status}`);
  if (REFUSED.has(status)) {
    return { ...NO_EFFECT, refused: rows.map(({ index }) => ({ index, reason })) };
  }
  if (status === 408 || status === 429 || status >= 500) {
    return retry(rows, reason, retryAfterMs(answer.retryAfter));
  }
  throw new SendError(`The ingest server answered ${status}: ${reason}`);
}

function retry<R>(rows: readonly R[], reason: string, waitMs: number): Attempt<R> {
  return { ...NO_EFFECT, retry: rows, reason, retryAfterMs: waitMs };
}

/** `code (first fault)` of a problem document (RFC 9457), or of a batch's row. */
function reasonOf(problem: Readonly<Record<string, unknown>>, fallback: string): string {
  const code = problem.code ?? problem.title;
  const [first] = Array.isArray(problem.errors)
    ? (problem.errors as Record<string, unknown>[])
    : [];
  const detail =
    first === undefined ? problem.detail : texts(first.pointer, first.code, first.detail).join(' ');
  const parts = texts(code, detail);
  return parts.length === 0 ? fallback : parts.join(': ').slice(0, 300);
}

function texts(...parts: readonly unknown[]): unknown[] {
  return parts.filter((part) => typeof part === 'string' && part !== '');
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** RFC 9110 section 10.2.3: seconds, or a date. */
export function retryAfterMs(text: string | undefined, now = Date.now()): number {
  if (text === undefined) return 0;
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(wait) ? 0 : Math.min(RETRY_AFTER_MAX_MS, Math.max(0, wait));
}
