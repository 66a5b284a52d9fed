import type { HttpLimits } from '../http/server.ts';

/** Bounds of the HTTP server. */
export const HTTP_LIMITS: HttpLimits = {
  connectionsMax: 10_000,
  headerBytesMax: 16 * 1024,
  headersMax: 100,
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  timeoutCheckMs: 1_000,
  connectionTimeoutMs: 30_000,
  keepAliveMs: 72_000,
};

/** Symbols in one request. */
export const SYMBOLS_MAX = 100;
/** How long `at_least` waits for the view. */
export const AT_LEAST_WAIT_MS = 1_000;
/** Requests that wait for a position at a time; over it 503. */
export const WAITERS_MAX = 10_000;
/** Latencies are told over the last one to two windows of this length. */
export const LATENCY_WINDOW_MS = 60_000;
/** How often the oldest pill of the log is looked up, for the status. */
export const OLDEST_REFRESH_MS = 60_000;
/** How often the latest processor's progress is looked at, and when it counts as stalled. */
export const PROGRESS_INTERVAL_MS = 2_000;
export const STALLED_AFTER_MS = 5_000;
/** A JSON body. */
export const BODY_BYTES_MAX = 16 * 1024;
/** A refused credential is answered this long after its request came, whatever is wrong with it. */
export const REFUSAL_AFTER_MS = 25;
/** Refusals that wait for that moment; in a larger flood they leave at once. */
export const REFUSALS_HELD_MAX = 5_000;
/** How often the operator's notices are read. */
export const NOTICES_REFRESH_MS = 2_000;
/** How often due renewals and erasures are looked for; access ends by the clock, not by this. */
export const HOUSEKEEPING_MS = 30_000;
/** Calls of an account that do not count, where its plan has not more: per process. */
export const UNMETERED_OF_ACCOUNT = { ratePerS: 20, burst: 60 } as const;
/** Calls from one network to sign-up, sign-in and everything by session: per process. */
export const UNMETERED_OF_NETWORK = { ratePerS: 50, burst: 200 } as const;
/** How long it is known where the log ends, and how long one waits to be told. */
export const LOG_END_KEPT_MS = 250;
export const LOG_END_WAIT_MS = 500;
