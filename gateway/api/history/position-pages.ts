import { TEST_PREFIX } from '../../../schemas/pill.ts';
import type { Statement } from '../clickhouse/read-bytes.ts';
import type { Select } from '../clickhouse/select.ts';
import { type HistoryRow, type PillRows, ROW_COLUMNS } from './history-pill.ts';
import { HISTORY_LIMITS } from './limits.ts';
import type { LogOffset, PartitionRange } from './resolved-range.ts';

/**
 * Reads the next pills of some partition ranges: one partition after another, each in log order.
 * Each statement covers a window of offsets, so a page costs what it holds, however long the ranges
 * are. A page may be short, or empty, before the end.
 * @returns the rows, the statement that selects them again, and the last offset that was covered;
 * undefined at the end of the ranges
 */
export async function readByPosition(
  select: Select,
  request: {
    readonly epoch: string;
    /** undefined: all except test symbols. */
    readonly symbol: string | undefined;
    readonly partitionRanges: readonly PartitionRange[];
    readonly limit: number;
  },
): Promise<PillRows & { readonly at: LogOffset | undefined }> {
  const { epoch, symbol, limit } = request;
  const params = { epoch, ...(symbol !== undefined && { symbol }) };
  const deadline = performance.now() + HISTORY_LIMITS.pageMs;
  const rows: HistoryRow[] = [];
  /** The windows that have pills. */
  const found: PartitionRange[] = [];
  const statement = (): Statement => ({
    query: selectWithin(found.length > 0 ? found : NOTHING, symbol, limit),
    params,
  });
  let remaining = request.partitionRanges;
  let window: number = HISTORY_LIMITS.windowOffsets;
  while (remaining.length > 0) {
    const slice = firstOffsets(remaining, window);
    const last = slice.at(-1)!;
    let at: LogOffset = { partition: last.partition, offset: last.until };
    const room = limit - rows.length;
    // Without FINAL, which would read all columns of the window: rows that FINAL would remove make
    // the page shorter, but not wrong.
    const [counted] = await select<{ count: number; last_partition: number; last_offset: number }>(
      `SELECT count() AS count, max(partition) AS last_partition,
              argMax(offset, (partition, offset)) AS last_offset
       FROM (SELECT partition, offset FROM pills WHERE ${within(slice, symbol)}
             ORDER BY partition, offset LIMIT ${room})`,
      params,
    );
    const { count, last_partition, last_offset } = counted!;
    if (count === room) at = { partition: last_partition, offset: last_offset };
    if (count > 0) {
      const covered = upTo(slice, at);
      found.push(...covered);
      const pills = selectWithin(covered, symbol, room);
      rows.push(...(await select<HistoryRow>(`SELECT ${ROW_COLUMNS} ${pills}`, params)));
    }
    remaining = remainingAfter(remaining, at);
    if (remaining.length > 0 && (rows.length >= limit || performance.now() > deadline)) {
      return { rows, statement: statement(), at };
    }
    window *= HISTORY_LIMITS.windowGrowth;
  }
  return { rows, statement: statement(), at: undefined };
}

/** A range that no pill is in. */
const NOTHING: readonly PartitionRange[] = [{ partition: 0, after: 0, until: 0 }];

/** The engine finds all rows of a pill by its key, so FINAL keeps the row that counts. */
function selectWithin(
  ranges: readonly PartitionRange[],
  symbol: string | undefined,
  limit: number,
): string {
  const condition = within(ranges, symbol);
  return `FROM pills FINAL
    WHERE (symbol, timestamp, id) IN
          (SELECT symbol, timestamp, id FROM pills WHERE ${condition})
      AND ${condition}
    ORDER BY partition, offset LIMIT ${limit}`;
}

/** The part of the ranges after an offset. */
export function remainingAfter(ranges: readonly PartitionRange[], at: LogOffset): PartitionRange[] {
  return ranges
    .filter(({ partition }) => partition >= at.partition)
    .map((one) =>
      one.partition > at.partition ? one : { ...one, after: Math.max(one.after, at.offset) },
    )
    .filter(({ after, until }) => until > after);
}

function firstOffsets(ranges: readonly PartitionRange[], count: number): PartitionRange[] {
  const slice: PartitionRange[] = [];
  let left = count;
  for (const { partition, after, until } of ranges) {
    if (left <= 0) break;
    const end = Math.min(until, after + left);
    slice.push({ partition, after, until: end });
    left -= end - after;
  }
  return slice;
}

function upTo(ranges: readonly PartitionRange[], at: LogOffset): PartitionRange[] {
  return ranges
    .filter(({ partition }) => partition <= at.partition)
    .map((one) =>
      one.partition < at.partition ? one : { ...one, until: Math.min(one.until, at.offset) },
    );
}

/** The condition as SQL: only our own numbers are in the text; the caller's text is a parameter. */
function within(ranges: readonly PartitionRange[], symbol: string | undefined): string {
  const offsets = ranges.map(
    ({ partition, after, until }) =>
      `(partition = ${partition} AND offset > ${after} AND offset <= ${until})`,
  );
  const ofSymbol =
    symbol === undefined ? `NOT startsWith(symbol, '${TEST_PREFIX}')` : 'symbol = {symbol:String}';
  return `epoch = {epoch:String} AND ${ofSymbol} AND (${offsets.join(' OR ')})`;
}
