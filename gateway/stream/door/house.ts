import { LIMITS } from '../limits.ts';
import type { House } from '../live/connection.ts';
import type { StreamMetrics } from '../metrics.ts';
import type { Members } from './members.ts';
import type { Register } from './register.ts';
import type { Sessions } from './sessions.ts';

/** What the house is made of, beside its rules. */
export interface HouseOptions extends Omit<House, 'limits' | 'later' | 'onClosed'> {
  readonly members: Members;
  readonly sessions: Sessions;
  readonly metrics: StreamMetrics;
  readonly records: Register;
}

/** Joins what all connections share: limits, clocks, what their end undoes. */
export function createHouse({
  members,
  sessions,
  metrics,
  records,
  ...shared
}: HouseOptions): House {
  return {
    ...shared,
    limits: LIMITS,
    later: (action) => void setImmediate(action),
    onClosed(connection, reason) {
      sessions.remove(connection);
      members.remove(connection);
      records.closed(connection);
      metrics.onClosed(connection, reason);
    },
  };
}
