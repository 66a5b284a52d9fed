import { type Admission, isOriginAllowed, type Refusal } from './admission.ts';
import type { House } from './connection.ts';
import type { StreamLimits } from './frames.ts';
import { LIMITS } from './limits.ts';
import type { StreamMetrics } from './metrics.ts';
import type { Sessions } from './sessions.ts';

/** What `welcome` tells; it must be what really holds. */
const TOLD_LIMITS: StreamLimits = {
  connections: LIMITS.connectionsPerAddressMax,
  symbols: LIMITS.symbolsPerConnectionMax,
  frames_in_per_s: LIMITS.framesInPerSecond,
  frame_in_bytes: LIMITS.frameInBytesMax,
  queue_bytes: LIMITS.queueBytesMax,
  resume_max_age_s: 0,
};

const ORIGIN_REFUSED: Refusal = {
  code: 'origin_refused',
  message: 'Until accounts exist only programs, and pages of this machine, may connect.',
  more: {},
};

/** What the house is made of, beside its rules. */
export interface HouseOptions
  extends Pick<House, 'hub' | 'board' | 'nowMicros' | 'nowMs' | 'logDown'> {
  readonly admission: Admission;
  readonly sessions: Sessions;
  readonly metrics: StreamMetrics;
  /** Why nobody may come in yet, or any more. */
  readonly notReady: () => string | undefined;
}

/** Joins what all connections share: limits, clocks, who may come in, what their end undoes. */
export function createHouse(options: HouseOptions): House {
  const { hub, board, nowMicros, nowMs, logDown, admission, sessions, metrics, notReady } = options;
  return {
    hub,
    board,
    limits: LIMITS,
    told: TOLD_LIMITS,
    nowMicros,
    nowMs,
    later: (action) => void setImmediate(action),
    logDown,
    refusalOf({ address, origin }) {
      const full = admission.enter(address);
      if (!isOriginAllowed(origin)) return ORIGIN_REFUSED;
      const waits = notReady();
      return full ?? (waits === undefined ? undefined : tellNotReady(waits));
    },
    onClosed(connection, reason) {
      sessions.remove(connection);
      admission.leave(connection.address);
      metrics.onClosed(connection, reason);
    },
  };
}

function tellNotReady(why: string): Refusal {
  return { code: 'not_ready', message: `Not ready: ${why}.`, more: { retry_after_ms: 1_000 } };
}
