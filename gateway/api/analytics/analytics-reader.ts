import type { Micros } from '../../../schemas/timestamp.ts';
import { cachedFor } from '../clickhouse/cached-for.ts';
import type { LogEnd, ReadLogEnd } from '../clickhouse/log-end.ts';
import type { ReadBytes } from '../clickhouse/read-bytes.ts';
import type { Select } from '../clickhouse/select.ts';
import { coversLog, readTableCoverage, type TableCoverage } from '../clickhouse/table-coverage.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** How up to date the table of pills is. */
export interface Freshness {
  readonly coverage: TableCoverage;
  /** Whether the table holds the whole log. */
  readonly isWholeLog: boolean;
  /** No pill that was in the log by this time is missing from the table. */
  readonly completeUntil: Micros;
}

export type AnalyticsReader = ReturnType<typeof createAnalyticsReader>;

/**
 * Reads figures at bounded cost. Callers bound how many queries run at a time (answer-cache.ts).
 * @param select returns times as ISO 8601
 */
export function createAnalyticsReader(
  select: Select,
  readBytes: ReadBytes,
  epoch: string,
  logEnd: ReadLogEnd,
) {
  return {
    select,
    readBytes,
    /** May be slightly old but stays true, because log and table only grow. @throws QueryError */
    freshness: cachedFor(ANALYTICS_LIMITS.freshnessMaxAgeMs, async (): Promise<Freshness> => {
      const [end, coverage] = await Promise.all([logEnd(), readTableCoverage(select, epoch)]);
      const isWholeLog = coversLog(coverage, end);
      return { coverage, isWholeLog, completeUntil: completeUntil(end, coverage) };
    }),
  };
}

/**
 * The time by which every pill in the log is also in the table: when the log's end was read, if the
 * table reaches that end; else the receive time of the newest stored pill of the partition that is
 * furthest behind. 0 if the log's end was never read.
 */
export function completeUntil(
  end: Pick<LogEnd, 'offsets' | 'at'> | undefined,
  { offsets, receivedAts }: Pick<TableCoverage, 'offsets' | 'receivedAts'>,
): Micros {
  if (end === undefined) return 0;
  const behind = [...end.offsets].filter(
    ([partition, offset]) => (offsets.get(partition) ?? -1) < offset,
  );
  return Math.min(end.at, ...behind.map(([partition]) => receivedAts.get(partition) ?? 0));
}
