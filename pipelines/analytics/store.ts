import { type ClickHouse, decimalSeconds } from '../../lib/clickhouse.ts';
import type { SymbolState } from '../../lib/order/judge.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { type BufferedRow, COLUMNS } from './rows.ts';

/** How far a partition is in the table. */
export interface Progress {
  readonly partition: number;
  /** Every pill with effect up to and including it is there. */
  readonly offset: number;
  /** Of the newest of them; undefined when there is none. */
  readonly receivedAt: Micros | undefined;
}

/** The raw table: the pills, and with them the sink's position. */
export interface PillStore {
  /** Highest offset stored of each partition of the epoch. */
  positions(): Promise<Map<number, Progress>>;
  /** State of a partition's symbols, for lateness and the bound on symbols. */
  symbols(partition: number): Promise<Map<string, SymbolState>>;
  /** Inserts rows as one block: all of them are there afterwards, or none. */
  insert(rows: readonly BufferedRow[]): Promise<void>;
  /** Tells readers how far the table is: also past records that have no row. */
  tell(progress: readonly Progress[]): Promise<void>;
}

/** The table that readers see. */
export const PILLS_TABLE = 'pills';

/** Opens the store of one epoch. @param table another one than readers see, while it is built */
export function createPillStore(
  clickhouse: ClickHouse,
  epoch: string,
  table: string = PILLS_TABLE,
): PillStore {
  const select = async <T>(query: string, params: Record<string, unknown> = {}): Promise<T[]> => {
    const result = await clickhouse.query({
      query,
      query_params: { epoch, ...params },
      format: 'JSONEachRow',
      clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
    });
    return result.json<T>();
  };
  return {
    async positions() {
      const rows = await select<{ partition: number; last: number; received: number }>(
        `SELECT partition, max(offset) AS last,
                toUnixTimestamp64Micro(max(received_at)) AS received
         FROM ${table} WHERE epoch = {epoch:String} GROUP BY partition`,
      );
      return new Map(
        rows.map(({ partition, last, received }) => [
          partition,
          { partition, offset: last, receivedAt: received },
        ]),
      );
    },
    async symbols(partition) {
      const rows = await select<{ symbol: string; at: number; pos: number; live: number | null }>(
        `SELECT symbol,
                max((toUnixTimestamp64Micro(order_time), offset)) AS newest,
                newest.1 AS at, newest.2 AS pos,
                maxOrNullIf(offset, NOT backfill) AS live
         FROM ${table}
         WHERE epoch = {epoch:String} AND partition = {partition:UInt16}
         GROUP BY symbol`,
        { partition },
      );
      return new Map(
        rows.map(({ symbol, at, pos, live }) => [
          symbol,
          { order: at, offset: pos, lastLive: live },
        ]),
      );
    },
    async insert(rows) {
      await clickhouse.insert({
        table,
        columns: [...COLUMNS],
        values: rows.map(({ values }) => values),
        format: 'JSONCompactEachRow',
        clickhouse_settings: {
          // One block, whatever its size: the position is only true if an insert is atomic.
          max_insert_block_size: '1048576',
          min_insert_block_size_rows: '1048576',
          input_format_parallel_parsing: 0,
          async_insert: 0,
        },
      });
    },
    async tell(progress) {
      await clickhouse.insert({
        table: 'pills_progress',
        columns: ['epoch', 'partition', 'offset', 'received_at'],
        values: progress.map(({ partition, offset, receivedAt }) => [
          epoch,
          partition,
          offset,
          receivedAt === undefined ? null : decimalSeconds(receivedAt),
        ]),
        format: 'JSONCompactEachRow',
        clickhouse_settings: { async_insert: 0 },
      });
    },
  };
}
