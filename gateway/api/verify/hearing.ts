import { VERIFY_LIMITS } from './limits.ts';
import type { Reason } from './reasons.ts';

/** Whether this process hears everything that is new. */
export interface Hearing {
  /** What is away of it. */
  fault(): Reason | undefined;
  /** Since when it hears without a break, Unix ms; undefined while it does not. */
  sinceMs(): number;
}

export interface Sources {
  /** The view and the memory have been read to the end that the log had at the start. */
  readonly isCaughtUp: () => boolean;
  readonly isConnected: () => boolean;
  /** How the latest processor is, as `GET /api/status` tells it. */
  readonly processor: () => 'up' | 'stalled' | 'unknown';
}

/** Watches by being looked at: `look` several times a second. */
export function createHearing(sources: Sources, nowMs: () => number) {
  let connectedAt: number | undefined;
  let heardAt = nowMs();
  const look = () => {
    const now = nowMs();
    if (!sources.isCaughtUp() || !sources.isConnected()) connectedAt = undefined;
    else {
      connectedAt ??= now;
      heardAt = now;
    }
  };
  const hearing: Hearing & { look(): void } = {
    look,
    fault() {
      look();
      if (!sources.isCaughtUp()) {
        return { code: 'view_behind', detail: 'this server reads the log since it was started' };
      }
      const awayMs = nowMs() - heardAt;
      if (awayMs > VERIFY_LIMITS.awayMaxMs) {
        return { code: 'log_unavailable', detail: `for ${Math.round(awayMs / 1000)} s` };
      }
      const processor = sources.processor();
      if (processor === 'unknown') return { code: 'log_unavailable', detail: 'it does not answer' };
      if (processor === 'up') return undefined;
      return { code: 'view_behind', detail: 'pills wait, and none is processed' };
    },
    sinceMs() {
      look();
      return connectedAt ?? nowMs();
    },
  };
  return hearing;
}
