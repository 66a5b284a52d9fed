import { LIMITS } from '../limits.ts';

/**
 * A circuit breaker (Nygard, "Release It!", 2nd ed., section 5.2) spares a failing endpoint attempts
 * that would fail too: it opens after some failures in a row, for a time that doubles with each
 * further failure; then one attempt decides.
 */
export function createCircuitBreaker() {
  let failures = 0;
  let until = 0;
  return {
    /** ms by `performance.now()` until which no attempt is made; 0 = closed. */
    restingUntilMs: () => until,
    /** The endpoint has rested and not succeeded since: one attempt at a time. */
    isProbing: () => until > 0,
    /** @returns whether the endpoint had rested */
    succeeded(): boolean {
      const hadRested = until > 0;
      failures = 0;
      until = 0;
      return hadRested;
    },
    /** @param retryAfterS requested by the receiver @returns whether the rest became longer */
    failed(nowMs: number, retryAfterS = 0): boolean {
      // Attempts that were in flight when the breaker opened do not count: only failures after the
      // rest double it.
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
    /** Another process lets the endpoint rest until then. */
    restUntil(untilMs: number): void {
      until = Math.max(until, untilMs);
    },
  };
}
