import { INGEST_LIMITS } from './limits.ts';

/** Whether pills can be put into the log, as far as is known. */
export interface LogHealth {
  /** Undefined while they can. */
  whyNot(): string | undefined;
  close(): void;
}

const CHECK_MS = 250;
/** A log that answers, but has failed to acknowledge this recently, is not believed. */
const FAILURE_COUNTS_MS = 5_000;
/** While the log is away it is asked this often, so that a process nobody sends to comes back. */
const PROBE_MS = 1_000;

/**
 * Watches a producer. It tells of the last batch only: once traffic is led away from a process
 * that is not ready, no batch would ever make it healthy again. So the broker is asked as well,
 * and believed when no batch has failed for a while.
 */
export function watchLog(log: {
  readonly isHealthy: () => boolean;
  /** Of `performance.now()`: the last failure to acknowledge. */
  readonly failedAt: () => number;
  readonly probe: () => Promise<unknown>;
}): LogHealth {
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
    const done = (answered: boolean) => {
      probing = false;
      isReachable = answered;
    };
    log.probe().then(
      () => done(true),
      () => done(false),
    );
  };
  const timer = setInterval(check, CHECK_MS).unref();
  return {
    whyNot() {
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
