import { databaseName, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';

/** Symbols that pills are spread over, and pills of a symbol a day. */
export const SYMBOLS = 50;
export const SYMBOL_PILLS_A_DAY = 20_000;
/** Pills of one insert, which the local engine holds in memory as one block. */
const FILLED_ROWS = 1_000_000;
const SPACING_US = 86_400_000_000 / SYMBOL_PILLS_A_DAY;

export type PillTable = ReturnType<typeof openPillTable>;

export function openPillTable(url: string, namespace: string) {
  const database = databaseName(namespace);
  const clickhouse = openClickHouse({ url, database, requestTimeoutMs: 300_000 });
  const select = async <T>(query: string, query_params = {}): Promise<T[]> => {
    const answer = await clickhouse.query({ query, query_params, format: 'JSONEachRow' });
    return answer.json<T>();
  };
  let filled = 0;
  return {
    select,
    close: () => clickhouse.close(),
    async count(): Promise<number> {
      const [row] = await select<{ n: string }>('SELECT count() AS n FROM pills');
      return Number(row!.n);
    },
    /** Symbols and ids of filled pills, of all days, in random order. */
    random: (count: number) =>
      select<{ symbol: string; id: string }>(
        `SELECT symbol, id FROM pills WHERE symbol LIKE 'BENCH.%'
         ORDER BY rand() LIMIT ${count} SETTINGS max_memory_usage = 0`,
      ),
    /**
     * Adds pills without the log until there are `count`, over as many days as needed, the last one
     * today. @param epoch of the log of the namespace
     */
    async fillTo(count: number, epoch: string): Promise<void> {
      while (filled < count) {
        const rows = Math.min(FILLED_ROWS, count - filled);
        await clickhouse.command({ query: insertPills(epoch, filled, rows) });
        filled += rows;
      }
    },
    /** Merges what was filled to one part, as old pills are. */
    merge: () => clickhouse.command({ query: 'OPTIMIZE TABLE pills FINAL' }),
    async parts(): Promise<number> {
      const [row] = await select<{ n: string }>(
        `SELECT count() AS n FROM system.parts
         WHERE database = '${database}' AND table = 'pills' AND active`,
      );
      return Number(row!.n);
    },
    /** Most bytes that a statement on pills, of those that run now, has held. */
    async statementBytes(): Promise<number> {
      const [row] = await select<{ bytes: string }>(
        `SELECT max(peak_memory_usage) AS bytes FROM system.processes
         WHERE query LIKE '%FROM pills%' AND query NOT LIKE '%system.processes%'`,
      );
      return Number(row!.bytes);
    },
    async bytesPerPill(): Promise<number> {
      const [row] = await select<{ bytes: number }>(
        `SELECT sum(data_compressed_bytes) / sum(rows) AS bytes FROM system.parts
         WHERE database = '${database}' AND table = 'pills' AND active`,
      );
      return row!.bytes;
    },
  };
}

/**
 * Like real pills: ids of 36 characters, four decimals, a few ms from timestamp to receive time.
 */
function insertPills(epoch: string, from: number, rows: number): string {
  return `
    INSERT INTO pills (epoch, partition, offset, symbol, id, timestamp, received_at, order_time,
      gross_spread_percent, market_state, confidence, prev, source, late, backfill)
    SELECT '${epoch}', number % ${SYMBOLS} % 4, number, 'BENCH.' || toString(number % ${SYMBOLS}),
      toString(generateUUIDv4()),
      now64(6) - toIntervalMicrosecond(intDiv(number, ${SYMBOLS}) * ${SPACING_US}
        + cityHash64(number) % 90000) AS at,
      at + toIntervalMicrosecond(3000 + cityHash64(number, 3) % 9000), at,
      round(0.1 + 0.05 * sin(number / 50000) + (cityHash64(number) % 1000) / 100000, 4),
      if(number % 10007 > 9000, 'closed', 'open'), (cityHash64(number, 1) % 10000) / 10000,
      number, 'bench', 0, 0
    FROM numbers(${from}, ${rows})`;
}
