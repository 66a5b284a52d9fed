import { type Credentials, credentialHeaders } from '../auth/auth.ts';
import { PilloleError, type Problem, type Retry } from '../error.ts';
import { retryDelayMs, wait } from './retry-delay.ts';

export const REST_LIMITS = {
  /** One attempt, from the request to the last byte of the answer. */
  timeoutMs: 10_000,
  /** The first attempt and its repeats. */
  attemptsMax: 3,
  backoffFirstMs: 200,
  backoffMaxMs: 5_000,
  /** A longer Retry-After (for example of a daily quota) is thrown instead of waited for. */
  retryAfterMaxMs: 10_000,
} as const;

export interface GetOptions {
  readonly signal?: AbortSignal;
  /** ms of one attempt; 10,000 by default. */
  readonly timeoutMs?: number;
  /** 3 by default; with 1 nothing is repeated. */
  readonly attemptsMax?: number;
}

export type RestClient = ReturnType<typeof createRestClient>;

/**
 * Reads the API. GETs are safe, so transient failures are repeated, with full jitter.
 * @param options without `apiUrl`, the API's origin, every call throws `not_configured`
 */
export function createRestClient(options: {
  readonly apiUrl: string | undefined;
  readonly credentials: Credentials;
  readonly fetch: typeof globalThis.fetch;
}) {
  const { apiUrl, credentials, fetch } = options;
  const attempt = async (url: URL, signal: AbortSignal, timeoutMs: number): Promise<unknown> => {
    const proof = await credentialHeaders(credentials, { method: 'GET', url: url.href });
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(url.href, {
        headers: { accept: 'application/json', ...proof },
        redirect: 'error', // a redirect must not carry the credential to another address
        signal: AbortSignal.any([signal, timeout]),
      });
      return readAnswer(url, response, await response.text());
    } catch (error) {
      if (error instanceof PilloleError) throw error;
      if (signal.aborted) throw new PilloleError({ code: 'aborted', message: 'Aborted.' });
      if (isNotHttp(error)) throw notPillole(url, `it does not speak ${url.protocol}//`);
      const message = timeout.aborted
        ? `${url.pathname} did not answer within ${timeoutMs} ms.`
        : `${url.origin} cannot be reached: ${reasonOf(error)}`;
      const code = timeout.aborted ? 'timeout' : 'network';
      throw new PilloleError({ code, message, retry: 'after', cause: error });
    }
  };
  return {
    /** @param path with its query, on the API's own origin @throws PilloleError */
    async get<T>(path: string, options: GetOptions = {}): Promise<T> {
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
    throw new PilloleError({ code: 'not_configured', message: 'apiUrl is not set.' });
  }
  const base = new URL(apiUrl);
  const url = new URL(path, base);
  if (path.startsWith('/') && url.origin === base.origin) return url;
  // An address in a frame must not carry the key to another origin.
  const message = `${url.origin} is not the API's own origin.`;
  throw new PilloleError({ code: 'not_configured', message });
}

/** ms until the next attempt; undefined if another attempt would not help. */
function repeatAfterMs(error: PilloleError, attempts: number): number | undefined {
  if (error.retry !== 'after') return undefined;
  const { backoffFirstMs, backoffMaxMs, retryAfterMaxMs } = REST_LIMITS;
  const serverMs = error.retryAfterMs ?? 0;
  if (serverMs > retryAfterMaxMs) return undefined;
  return serverMs + retryDelayMs(attempts - 1, backoffFirstMs, backoffMaxMs);
}

/** The JSON of a 2xx answer. @throws PilloleError for any other outcome */
export function readAnswer(url: URL, { status, headers }: Response, text: string): unknown {
  const body = parse(text);
  if (status >= 200 && status < 300) {
    if (body !== undefined) return body;
    throw notPillole(url, `HTTP ${status} is not JSON`, status);
  }
  const problem = isProblem(body) ? body : undefined;
  if (problem === undefined && status < 500 && !TRANSIENT.has(status)) {
    throw notPillole(url, `HTTP ${status} is not a problem document`, status);
  }
  const retryAfterMs = readRetryAfter(headers.get('retry-after'), problem);
  const retry: Retry = problem?.retry ?? (TRANSIENT.has(status) ? 'after' : 'never');
  const message = problem === undefined ? `HTTP ${status}` : describe(problem);
  const code = problem?.code ?? `http_${status}`;
  throw new PilloleError({ code, message, status, retry, retryAfterMs, problem });
}

/** Codes for an answer that is not HTTP, and of TLS. */
const NOT_HTTP = /^(?:HPE_|EPROTO|ERR_SSL)/;

/** From undici 7 on, which a program may have in place of Node's own, a parser's error may lack a code. */
function isNotHttp(error: unknown): boolean {
  const { cause } = error as Error & { cause?: { name?: string } };
  return cause?.name === 'HTTPParserError' || NOT_HTTP.test(reasonOf(error));
}

function notPillole(url: URL, what: string, status?: number): PilloleError {
  const message =
    `${url.origin} is not an API of pillole: ${what}. Check the address and its port; the API has ` +
    'port 8080 by default.';
  return new PilloleError({ code: 'not_pillole', message, status });
}

/** Statuses of proxies on the way, which send no problem document. */
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

/** undici reports only "fetch failed"; the cause has the reason. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
