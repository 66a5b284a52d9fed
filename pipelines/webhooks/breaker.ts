import { LIMITS } from './limits.ts';

/** Keeps from an endpoint that fails what would fail as well, and asks now and then. */
export interface Breaker {
  /** ms by `performance.now()` until which nothing is tried; 0 = closed. */
  restingUntilMs(): number;
  /** It has rested, and nothing has succeeded since: one attempt at a time. */
  isProbing(): boolean;
  /** @returns whether it had rested */
  succeeded(): boolean;
  /** @param retryAfterS what the receiver asked for @returns whether it rests longer than before */
  failed(nowMs: number, retryAfterS?: number): boolean;
  /** Another process rests until then. */
  restUntil(untilMs: number): void;
}

/**
 * A circuit breaker (Nygard, "Release It!", 2nd ed., section 5.2): it opens after some failures in
 * a row, for a time that doubles with each failure after it; then one attempt decides.
 */
export function createBreaker(): Breaker {
  let failures = 0;
  let until = 0;
  return {
    restingUntilMs: () => until,
    isProbing: () => until > 0,
    succeeded() {
      const hadRested = until > 0;
      failures = 0;
      until = 0;
      return hadRested;
    },
    failed(nowMs, retryAfterS = 0) {
      // What was on its way when it opened says nothing new: only attempts after the rest double it.
      if (nowMs >= until) failures += 1;
      const beyond = failures - LIMITS.breakerFailures;
      const restS =
        beyond < 0 || nowMs < until
          ? 0
          : Math.min(LIMITS.restMaxS, LIMITS.restFirstS * 2 ** Math.min(beyond, 20));
      const waitS = Math.max(restS, retryAfterS);
      const isLonger = waitS > 0 && nowMs + waitS * 1_000 > until;
      if (isLonger) until = nowMs + waitS * 1_000;
      return isLonger;
    },
    restUntil(untilMs) {
      until = Math.max(until, untilMs);
    },
  };
}
