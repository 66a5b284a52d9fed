import type { SymbolState } from '../../domain/order/judge.ts';
import { type ClickHouse, decimalSeconds } from '../../lib/clickhouse/clickhouse-client.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { BufferedRow } from './pill-rows.ts';

/** Progress of a partition in the table. */
export interface TableProgress {
  readonly partition: number;
  /** Every pill with effect up to and including this offset is in the table. */
  readonly offset: number;
  /** Receive time of the newest of them; undefined if there is none. */
  readonly receivedAt: Micros | undefined;
}

export type PillStore = ReturnType<typeof createPillStore>;

/** The table that readers see. */
export const PILLS_TABLE = 'pills';

/**
 * Opens the raw table of the pills of one epoch, which also gives the position of the sink.
 * @param table another table than readers see, while a rebuild fills it
 */
export function createPillStore(clickhouse: ClickHouse, epoch: string, table = PILLS_TABLE) {
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
    /** Highest offset stored of each partition of the epoch. */
    async positions(): Promise<Map<number, TableProgress>> {
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
    /** State of a partition's symbols, for lateness and the bound on symbols. */
    async symbols(partition: number): Promise<Map<string, SymbolState>> {
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
    /** Inserts at least one row as one block: afterwards either all rows are stored or none. */
    async insert(rows: readonly BufferedRow[]): Promise<void> {
      await clickhouse.insert({
        table,
        columns: Object.keys(rows[0]!.values) as [string, ...string[]],
        values: rows.map(({ values }) => Object.values(values)),
        format: 'JSONCompactEachRow',
        clickhouse_settings: {
          // One block, whatever its size: the position is only correct if an insert is atomic.
          max_insert_block_size: '1048576',
          min_insert_block_size_rows: '1048576',
          input_format_parallel_parsing: 0,
          async_insert: 0,
        },
      });
    },
    /** Publishes the progress of the table, also past records that have no row. */
    async publishProgress(progress: readonly TableProgress[]): Promise<void> {
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
