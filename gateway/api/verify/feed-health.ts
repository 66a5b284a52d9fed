import { VERIFY_LIMITS } from './limits.ts';
import type { Reason } from './reasons.ts';

export type FeedHealth = ReturnType<typeof createFeedHealth>;

/**
 * Tracks whether this process receives everything new in the log. It samples the connection
 * whenever it is read; `sample` must also run several times a second.
 */
export function createFeedHealth(
  sources: {
    /** The view and the cache have reached the end that the log had at the start. */
    readonly isCaughtUp: () => boolean;
    readonly isConnected: () => boolean;
    /** State of the latest processor, as in `GET /api/status`. */
    readonly processor: () => 'up' | 'stalled' | 'unknown';
  },
  nowMs: () => number,
) {
  let connectedAt: number | undefined;
  let lastConnectedAt = nowMs();
  const sample = () => {
    const now = nowMs();
    if (!sources.isCaughtUp() || !sources.isConnected()) connectedAt = undefined;
    else {
      connectedAt ??= now;
      lastConnectedAt = now;
    }
  };
  return {
    sample,
    /** Why newer pills may be unknown here; undefined if all is well. */
    fault(): Reason | undefined {
      sample();
      if (!sources.isCaughtUp()) {
        return { code: 'view_behind', detail: 'this server was started and still reads the log' };
      }
      const disconnectedMs = nowMs() - lastConnectedAt;
      if (disconnectedMs > VERIFY_LIMITS.disconnectedMaxMs) {
        return { code: 'log_unavailable', detail: `for ${Math.round(disconnectedMs / 1000)} s` };
      }
      const processor = sources.processor();
      if (processor === 'unknown') {
        return { code: 'log_unavailable', detail: 'the log does not answer' };
      }
      if (processor === 'up') return undefined;
      return { code: 'view_behind', detail: 'pills are waiting and none is processed' };
    },
    /** Start of the current uninterrupted connection, Unix ms; now while there is none. */
    connectedSinceMs() {
      sample();
      return connectedAt ?? nowMs();
    },
  };
}
