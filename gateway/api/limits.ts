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

/** Symbols of one request. */
export const SYMBOLS_MAX = 100;
/** How long `at_least` waits for the view. */
export const AT_LEAST_WAIT_MS = 1_000;
/** Requests that may wait for a position at the same time; beyond that, 503. */
export const WAITERS_MAX = 10_000;
/** Latencies cover the last one to two windows of this length. */
export const LATENCY_WINDOW_MS = 60_000;
/** How often the oldest pill of the log is read for the status. */
export const OLDEST_REFRESH_MS = 60_000;
/** How often the lag of the latest processor is read, and when it counts as stalled. */
export const PROGRESS_INTERVAL_MS = 2_000;
export const STALLED_AFTER_MS = 5_000;
/** Default limit of a JSON body. */
export const BODY_BYTES_MAX = 16 * 1024;
/** A refused credential is answered this long after the request, whatever the fault. */
export const REFUSAL_AFTER_MS = 25;
/** Refusals that wait for that moment; in a larger flood, further refusals are sent at once. */
export const REFUSALS_HELD_MAX = 5_000;
/** How often the operator's notices are read. */
export const NOTICES_REFRESH_MS = 2_000;
/** How often the days of the status page are read. */
export const SERVICE_HISTORY_REFRESH_MS = 60_000;
/** How often due renewals and erasures run; access ends by the clock, not by this interval. */
export const HOUSEKEEPING_MS = 30_000;
/** Unmetered calls of an account, per process, unless its plan allows more. */
export const UNMETERED_OF_ACCOUNT = { ratePerS: 20, burst: 60 } as const;
/** Calls from one network to sign-up, sign-in and session routes, per process. */
export const UNMETERED_OF_NETWORK = { ratePerS: 50, burst: 200 } as const;
/** How long a known end of the log stays current, and how long a caller waits for a new one. */
export const LOG_END_KEPT_MS = 250;
export const LOG_END_WAIT_MS = 500;
