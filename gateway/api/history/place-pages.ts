import { TEST_PREFIX } from '../../../schemas/pill.ts';
import type { Select } from '../clickhouse/select.ts';
import { HISTORY_LIMITS } from './limits.ts';
import { type HistoryRow, ROW_COLUMNS } from './rows.ts';
import type { Stretch } from './span.ts';

export interface At {
  readonly partition: number;
  readonly offset: number;
}

export interface PlacePage {
  readonly rows: readonly HistoryRow[];
  /** The last place that was looked at; undefined: the end. */
  readonly at: At | undefined;
}

/**
 * Reads the next pills of some stretches of the log: partition after partition, each in its order.
 * It looks at a window of places at a time, so that a page costs what it holds, however long the
 * stretches are. A page may be short, or empty, before the end.
 */
export async function readPlaces(
  select: Select,
  ask: {
    readonly epoch: string;
    /** undefined: all but test symbols. */
    readonly symbol: string | undefined;
    readonly stretches: readonly Stretch[];
    readonly limit: number;
  },
): Promise<PlacePage> {
  const { epoch, symbol, limit } = ask;
  const params = { epoch, ...(symbol === undefined ? {} : { symbol }) };
  const deadline = performance.now() + HISTORY_LIMITS.pageMs;
  const rows: HistoryRow[] = [];
  let left = ask.stretches;
  let window: number = HISTORY_LIMITS.windowPlaces;
  while (left.length > 0) {
    const slice = firstPlaces(left, window);
    const last = slice.at(-1)!;
    let at: At = { partition: last.partition, offset: last.until };
    const room = limit - rows.length;
    // Without FINAL, which would read all columns of the window: rows that it takes away make the
    // page shorter, not wrong.
    const [found] = await select<{ count: number; last_partition: number; last_offset: number }>(
      `SELECT count() AS count, max(partition) AS last_partition,
              argMax(offset, (partition, offset)) AS last_offset
       FROM (SELECT partition, offset FROM pills WHERE ${within(slice, symbol)}
             ORDER BY partition, offset LIMIT ${room})`,
      params,
    );
    const { count, last_partition, last_offset } = found!;
    if (count === room) at = { partition: last_partition, offset: last_offset };
    if (count > 0) {
      const wanted = within(firstUntil(slice, at), symbol);
      const key = '(symbol, timestamp, id)';
      // By its key the engine finds all rows of a pill, so that FINAL sees which one counts.
      const pills = await select<HistoryRow>(
        `SELECT ${ROW_COLUMNS} FROM pills FINAL
         WHERE ${key} IN (SELECT symbol, timestamp, id FROM pills WHERE ${wanted}) AND ${wanted}
         ORDER BY partition, offset LIMIT ${room}`,
        params,
      );
      rows.push(...pills);
    }
    left = restAfter(left, at);
    if (left.length > 0 && (rows.length >= limit || performance.now() > deadline)) {
      return { rows, at };
    }
    window *= HISTORY_LIMITS.windowGrowth;
  }
  return { rows, at: undefined };
}

/** What is left of stretches after a place. */
export function restAfter(stretches: readonly Stretch[], at: At): Stretch[] {
  return stretches
    .filter(({ partition }) => partition >= at.partition)
    .map((one) =>
      one.partition > at.partition ? one : { ...one, after: Math.max(one.after, at.offset) },
    )
    .filter(({ after, until }) => until > after);
}

function firstPlaces(stretches: readonly Stretch[], places: number): Stretch[] {
  const slice: Stretch[] = [];
  let left = places;
  for (const { partition, after, until } of stretches) {
    if (left <= 0) break;
    const end = Math.min(until, after + left);
    slice.push({ partition, after, until: end });
    left -= end - after;
  }
  return slice;
}

function firstUntil(stretches: readonly Stretch[], at: At): Stretch[] {
  return stretches
    .filter(({ partition }) => partition <= at.partition)
    .map((one) =>
      one.partition < at.partition ? one : { ...one, until: Math.min(one.until, at.offset) },
    );
}

/** Numbers of ours alone stand in the text; what a caller wrote is a parameter. */
function within(stretches: readonly Stretch[], symbol: string | undefined): string {
  const places = stretches.map(
    ({ partition, after, until }) =>
      `(partition = ${partition} AND offset > ${after} AND offset <= ${until})`,
  );
  const ofSymbol =
    symbol === undefined ? `NOT startsWith(symbol, '${TEST_PREFIX}')` : 'symbol = {symbol:String}';
  return `epoch = {epoch:String} AND ${ofSymbol} AND (${places.join(' OR ')})`;
}
