import type { ClickHouse } from '../../../lib/clickhouse.ts';
import type { Log } from '../../../lib/log.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { kept } from '../clickhouse/kept.ts';
import { openSelect, type Select } from '../clickhouse/select.ts';
import { hasAllOf, readStored, type Stored } from '../clickhouse/stored.ts';
import type { AskLogEnd } from '../log-end.ts';
import { completeUntil } from './complete-until.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** How far the table is. */
export interface Extent {
  /** Every pill up to here is in it. */
  readonly stored: Stored;
  /** All of the log is in it. */
  readonly hasAll: boolean;
  /** Up to here nothing that was in the log is missing. */
  readonly completeUntil: Micros;
}

/** Asks ClickHouse, at bounded cost. */
export interface Desk {
  /** Times come as ISO 8601. */
  readonly ask: Select;
  /**
   * What was read a moment ago is still true: log and table only grow.
   * @throws NoAnswer
   */
  extent(): Promise<Extent>;
}

export interface DeskOptions {
  readonly clickhouse: ClickHouse;
  readonly epoch: string;
  readonly log: Log;
  readonly logEnd: AskLogEnd;
}

/** Opens the desk. How many ask at a time is bounded by who calls it (question.ts). */
export function openDesk({ clickhouse, epoch, log, logEnd }: DeskOptions): Desk {
  const ask = openSelect(clickhouse, log, {
    ...{ name: 'analytics', bounds: ANALYTICS_LIMITS },
    settings: {
      date_time_output_format: 'iso',
      max_result_rows: String(ANALYTICS_LIMITS.statementRowsAnswered),
    },
  });
  const extent = kept(ANALYTICS_LIMITS.asOfKeptMs, async () => {
    const [end, stored] = await Promise.all([logEnd(), readStored(ask, epoch)]);
    return { stored, hasAll: hasAllOf(stored, end), completeUntil: completeUntil(end, stored) };
  });
  return { ask, extent };
}
