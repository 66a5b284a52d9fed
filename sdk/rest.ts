import { backoffMs, wait } from './backoff.ts';
import { PilloleError, type Problem, type Retry } from './error.ts';

export const REST_LIMITS = {
  /** One attempt, from the request to the last byte of the answer. */
  timeoutMs: 10_000,
  /** The first attempt and its repeats. */
  attemptsMax: 3,
  backoffFirstMs: 200,
  backoffMaxMs: 5_000,
  /** A longer Retry-After (a daily quota, say) is thrown, not waited for. */
  retryAfterMaxMs: 10_000,
} as const;

export interface RestOptions {
  /** Origin of the API; undefined: every call throws `not_configured`. */
  readonly apiUrl: string | undefined;
  readonly key: string | undefined;
  readonly fetch: typeof fetch;
}

export interface GetOptions {
  readonly signal?: AbortSignal;
  /** ms of one attempt; 10,000 by default. */
  readonly timeoutMs?: number;
  /** 3 by default; 1 repeats nothing. */
  readonly attemptsMax?: number;
}

/** Reads the API. GETs are safe, so what may be cured by it is repeated, with full jitter. */
export interface Rest {
  /** @param path with its query, of the API's own origin @throws PilloleError */
  get<T>(path: string, options?: GetOptions): Promise<T>;
}

export function createRest({ apiUrl, key, fetch }: RestOptions): Rest {
  const attempt = async (url: URL, signal: AbortSignal, timeoutMs: number): Promise<unknown> => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(url.href, {
        headers: { accept: 'application/json', ...(key === undefined ? {} : { 'x-api-key': key }) },
        redirect: 'error', // the key goes to no other address
        signal: AbortSignal.any([signal, timeout]),
      });
      return readAnswer(response.status, response.headers, await response.text());
    } catch (error) {
      if (error instanceof PilloleError) throw error;
      if (signal.aborted) throw new PilloleError({ code: 'aborted', message: 'Aborted.' });
      const message = timeout.aborted
        ? `${url.pathname} gave no answer in ${timeoutMs} ms.`
        : `${url.origin} cannot be reached: ${reasonOf(error)}`;
      const code = timeout.aborted ? 'timeout' : 'network';
      throw new PilloleError({ code, message, retry: 'after', cause: error });
    }
  };
  return {
    async get<T>(path: string, options: GetOptions = {}) {
      const { signal = new AbortController().signal, timeoutMs = REST_LIMITS.timeoutMs } = options;
      const { attemptsMax = REST_LIMITS.attemptsMax } = options;
      const url = addressOf(path, apiUrl);
      for (let attempts = 1; ; attempts += 1) {
        try {
          return (await attempt(url, signal, timeoutMs)) as T;
        } catch (error) {
          const delayMs = repeatAfterMs(error as PilloleError, attempts);
          if (attempts >= attemptsMax || delayMs === undefined) throw error;
          await wait(delayMs, signal);
        }
      }
    },
  };
}

function addressOf(path: string, apiUrl: string | undefined): URL {
  if (apiUrl === undefined) {
    throw new PilloleError({ code: 'not_configured', message: 'No apiUrl was given.' });
  }
  const base = new URL(apiUrl);
  const url = new URL(path, base);
  if (path.startsWith('/') && url.origin === base.origin) return url;
  // An address that came in a frame must not carry the key elsewhere.
  const message = `${url.origin} is not the API's own origin.`;
  throw new PilloleError({ code: 'not_configured', message });
}

/** ms until the next attempt; undefined when another would not help. */
function repeatAfterMs(error: PilloleError, attempts: number): number | undefined {
  if (error.retry !== 'after') return undefined;
  const toldMs = error.retryAfterMs ?? 0;
  if (toldMs > REST_LIMITS.retryAfterMaxMs) return undefined;
  const { backoffFirstMs, backoffMaxMs } = REST_LIMITS;
  return toldMs + backoffMs(attempts - 1, backoffFirstMs, backoffMaxMs);
}

function readAnswer(status: number, headers: Headers, text: string): unknown {
  const body = parse(text);
  if (status >= 200 && status < 300) {
    if (body !== undefined) return body;
    const message = `An answer of ${status} that is not JSON.`;
    throw new PilloleError({ code: 'answer_malformed', message, status });
  }
  const problem = isProblem(body) ? body : undefined;
  const retryAfterMs = readRetryAfter(headers.get('retry-after'), problem);
  const retry: Retry = problem?.retry ?? (TRANSIENT.has(status) ? 'after' : 'never');
  const message = problem === undefined ? `HTTP ${status}` : describe(problem);
  const code = problem?.code ?? `http_${status}`;
  throw new PilloleError({ code, message, status, retry, retryAfterMs, problem });
}

/** Statuses of proxies in between, which have no problem document. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

function describe({ title, detail, errors }: Problem): string {
  const faults = Array.isArray(errors) ? errors.map((fault) => fault?.detail).filter(Boolean) : [];
  return [`${title}.`, detail, ...faults].filter(Boolean).join(' ');
}

/** ms; the header in seconds or as a date (RFC 9110, 10.2.3), else the problem's own member. */
function readRetryAfter(header: string | null, problem: Problem | undefined): number | undefined {
  if (header !== null && /^\d+$/.test(header)) return Number(header) * 1000;
  const at = header === null ? Number.NaN : Date.parse(header);
  if (!Number.isNaN(at)) return Math.max(0, at - Date.now());
  const seconds = problem?.retry_after_s;
  return typeof seconds === 'number' ? seconds * 1000 : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'title' in body;
}

/** undici says no more than "fetch failed"; its cause knows. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
