import type { Report } from '../../lib/dedicated/channel.ts';
import type { LIMITS } from './limits.ts';

/** Whether a process lives, judged by what it reports. */
export interface Pulse {
  /** A process was started in place of the last. */
  started(): void;
  heard(report: Pick<Report, 'notReady' | 'offsets'>): void;
  /** It reads the log to its end, and not for so long that others should wait for it. */
  isStarting(): boolean;
  /** It must be started anew. Says so once. */
  isDead(): boolean;
}

type PulseLimits = Pick<typeof LIMITS, 'startingCountsMs' | 'silentMaxMs' | 'stuckMaxMs'>;

/**
 * Creates the judge of one process after another. One that serves must answer. One that does not
 * serve yet must get on with the log: that it answers is not enough, or it would never be helped.
 * @param nowMs a monotonic clock, in ms
 */
export function createPulse(
  limits: { readonly [L in keyof PulseLimits]: number },
  nowMs: () => number,
): Pulse {
  let startedAtMs = nowMs();
  /** When it was last as it should be. */
  let wellAtMs = startedAtMs;
  let isServing = false;
  let isAwaited = false;
  let readSoFar = '';
  return {
    started() {
      startedAtMs = nowMs();
      wellAtMs = startedAtMs;
      isServing = false;
      isAwaited = true;
      readSoFar = '';
    },
    heard({ notReady, offsets }) {
      isServing = notReady === undefined;
      const read = isServing ? '' : JSON.stringify(offsets);
      if (isServing || read !== readSoFar) wellAtMs = nowMs();
      readSoFar = read;
    },
    isStarting: () => !isServing && nowMs() - startedAtMs < limits.startingCountsMs,
    isDead() {
      const allowedMs = isServing ? limits.silentMaxMs : limits.stuckMaxMs;
      if (!isAwaited || nowMs() - wellAtMs < allowedMs) return false;
      isAwaited = false;
      return true;
    },
  };
}
