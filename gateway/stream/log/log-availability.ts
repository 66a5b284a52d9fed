import type { Micros } from '../../../schemas/timestamp.ts';
import type { LogStatus } from '../protocol/server-frames.ts';

/**
 * Creates the monitor of the log's availability, which ignores outages as short as a rebalance.
 * @param downAfterMs how long the log must be unreachable to count as down; `since` is then the
 *   first observation of the outage
 */
export function createLogAvailability(downAfterMs: number) {
  let lostSince: Micros | undefined;
  let outage: LogStatus | undefined;
  return {
    /** The status while the log is down. */
    down: () => outage,
    /** @returns the new status if it changed. */
    observe(isConnected: boolean, now: Micros): LogStatus | undefined {
      if (isConnected) {
        lostSince = undefined;
        if (outage === undefined) return undefined;
        outage = undefined;
        return { state: 'up', since: now };
      }
      lostSince ??= now;
      if (outage !== undefined || now - lostSince < downAfterMs * 1000) return undefined;
      outage = { state: 'down', since: lostSince };
      return outage;
    },
  };
}
