import type { ClickHouse } from '../../../lib/clickhouse.ts';
import type { Log } from '../../../lib/log.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { kept } from '../clickhouse/kept.ts';
import { openSelect, type Select } from '../clickhouse/select.ts';
import { readStored, type Stored } from '../clickhouse/stored.ts';
import { completeUntil, type Logged } from './complete-until.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** Up to where the log is in the answer. */
export interface AsOf {
  /** Every pill up to here is in it. */
  readonly stored: Stored;
  /** All of the log is in it. */
  readonly hasAll: boolean;
  /** Up to here nothing that was received is missing: now, where all of the log is in it. */
  readonly completeUntil: Micros;
}

/** Asks ClickHouse, at bounded cost. */
export interface Desk {
  /** Times come as ISO 8601. */
  readonly ask: Select;
  /**
   * How far the table is. What was read a moment ago is still true: the table only grows.
   * @throws NoAnswer
   */
  asOf(): Promise<AsOf>;
}

export interface DeskOptions {
  readonly clickhouse: ClickHouse;
  readonly epoch: string;
  readonly log: Log;
  readonly nowMicros: () => Micros;
  /** How far the log is known to be, by partition, and whether that is how far it is now. */
  readonly logged: () => Logged;
}

/** Opens the desk. How many ask at a time is bounded by who calls it (question.ts). */
export function openDesk({ clickhouse, epoch, log, nowMicros, logged }: DeskOptions): Desk {
  const ask = openSelect(clickhouse, log, {
    ...{ name: 'analytics', bounds: ANALYTICS_LIMITS },
    settings: {
      date_time_output_format: 'iso',
      max_result_rows: String(ANALYTICS_LIMITS.statementRowsAnswered),
    },
  });
  const asOf = kept(ANALYTICS_LIMITS.asOfKeptMs, async () => {
    const known = logged();
    const before = nowMicros();
    const stored = await readStored(ask, epoch);
    const until = completeUntil(known, stored, before);
    return { stored, hasAll: known.isCurrent && until === before, completeUntil: until };
  });
  return { ask, asOf };
}
