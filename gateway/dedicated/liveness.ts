import type { ProcessReport } from '../../domain/dedicated/channel.ts';

export type LivenessLimits = Readonly<
  Record<'startingCountsMs' | 'silentMaxMs' | 'stuckMaxMs', number>
>;

/**
 * Creates the liveness check of a process, based on its reports. A serving process must answer. A
 * starting process must also make progress in the log: answers alone are not enough, because a
 * stuck process may answer forever.
 * @param nowMs a monotonic clock, in ms
 */
export function createLiveness(limits: LivenessLimits, nowMs: () => number) {
  let startedAtMs = nowMs();
  /** Time of the last sign of progress. */
  let aliveAtMs = startedAtMs;
  let isServing = false;
  let isAwaited = false;
  let offsetsRead = '';
  return {
    /** A process was started in place of the last. */
    onStart() {
      startedAtMs = nowMs();
      aliveAtMs = startedAtMs;
      isServing = false;
      isAwaited = true;
      offsetsRead = '';
    },
    onReport({ notReady, offsets }: Pick<ProcessReport, 'notReady' | 'offsets'>) {
      isServing = notReady === undefined;
      const read = isServing ? '' : JSON.stringify(offsets);
      if (isServing || read !== offsetsRead) aliveAtMs = nowMs();
      offsetsRead = read;
    },
    /** Whether the process is reading the log and was started less than `startingCountsMs` ago. */
    isStarting: () => !isServing && nowMs() - startedAtMs < limits.startingCountsMs,
    /** Whether the process must be restarted; true only once for each process. */
    isDead() {
      const allowedMs = isServing ? limits.silentMaxMs : limits.stuckMaxMs;
      if (!isAwaited || nowMs() - aliveAtMs < allowedMs) return false;
      isAwaited = false;
      return true;
    },
  };
}
