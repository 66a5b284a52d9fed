import type { Micros } from '../../../schemas/timestamp.ts';
import type { LogStatus } from '../live/frames.ts';

/** Watches whether pills can arrive, without crying at each rebalance. */
export interface LogWatch {
  /** @returns the new state when it changed. */
  observe(isConnected: boolean, now: Micros): LogStatus | undefined;
  /** The state while the log is away. */
  down(): LogStatus | undefined;
}

/**
 * Creates a watch that takes the log for reachable at first.
 * @param downAfterMs how long it must be away before it is called down; `since` is then when it
 *   was first found away
 */
export function createLogWatch(downAfterMs: number): LogWatch {
  let lostSince: Micros | undefined;
  let told: LogStatus | undefined;
  return {
    down: () => told,
    observe(isConnected, now) {
      if (isConnected) {
        lostSince = undefined;
        if (told === undefined) return undefined;
        told = undefined;
        return { state: 'up', since: now };
      }
      lostSince ??= now;
      if (told !== undefined || now - lostSince < downAfterMs * 1000) return undefined;
      told = { state: 'down', since: lostSince };
      return told;
    },
  };
}
