import { INGEST_LIMITS } from './limits.ts';

const CHECK_MS = 250;
/** A log that answers but failed to acknowledge this recently counts as unhealthy. */
const FAILURE_COUNTS_MS = 5_000;
/** How often an unavailable log is probed, so that a process without traffic recovers. */
const PROBE_MS = 1_000;

/**
 * Watches a producer. Its own health reflects only the last batch: once traffic is routed away from
 * a process that is not ready, no batch would make it healthy again. So the broker is probed as
 * well, and its answer counts when no batch has failed for a while.
 */
export function watchLog(log: {
  readonly isHealthy: () => boolean;
  /** Time of the last failure to acknowledge, `performance.now()`. */
  readonly failedAt: () => number;
  readonly probe: () => Promise<unknown>;
}) {
  let unhealthySince: number | undefined;
  let probing = false;
  let probedAt = 0;
  let isReachable = false;
  const check = () => {
    const now = performance.now();
    if (log.isHealthy()) {
      unhealthySince = undefined;
      isReachable = false;
      return;
    }
    unhealthySince ??= now;
    if (probing || now - probedAt < PROBE_MS) return;
    probing = true;
    probedAt = now;
    const answered = log.probe().then(
      () => true,
      () => false,
    );
    void answered.then((isAnswered) => {
      probing = false;
      isReachable = isAnswered;
    });
  };
  const timer = setInterval(check, CHECK_MS).unref();
  return {
    /** Why the log accepts no pills; undefined while it accepts them, as far as is known. */
    problem(): string | undefined {
      if (unhealthySince === undefined || log.isHealthy()) return undefined;
      const now = performance.now();
      const unhealthyMs = now - unhealthySince;
      if (unhealthyMs < INGEST_LIMITS.unhealthyAfterMs) return undefined;
      if (isReachable && now - log.failedAt() > FAILURE_COUNTS_MS) return undefined;
      return `the log has not acknowledged for ${Math.round(unhealthyMs / 1000)} s`;
    },
    close: () => clearInterval(timer),
  };
}
