import type { House } from './connection.ts';
import { LIMITS } from './limits.ts';
import type { Members } from './members.ts';
import type { StreamMetrics } from './metrics.ts';
import type { Sessions } from './sessions.ts';

/** What the house is made of, beside its rules. */
export interface HouseOptions extends Omit<House, 'limits' | 'later' | 'onClosed'> {
  readonly members: Members;
  readonly sessions: Sessions;
  readonly metrics: StreamMetrics;
}

/** Joins what all connections share: limits, clocks, what their end undoes. */
export function createHouse({ members, sessions, metrics, ...shared }: HouseOptions): House {
  return {
    ...shared,
    limits: LIMITS,
    later: (action) => void setImmediate(action),
    onClosed(connection, reason) {
      sessions.remove(connection);
      members.remove(connection);
      metrics.onClosed(connection, reason);
    },
  };
}
