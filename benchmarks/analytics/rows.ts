import { type ClickHouse, databaseName, openClickHouse } from '../../lib/clickhouse.ts';

/** Symbols that pills are spread over, and how many a symbol has a day. */
export const SYMBOLS = 50;
export const PILLS_A_DAY = 20_000;
const SPACING_US = 86_400_000_000 / PILLS_A_DAY;

/** The table of pills, filled without the log: what is measured on it is reading. */
export interface Rows {
  readonly clickhouse: ClickHouse;
  /** Adds pills until there are `count`, over as many days as that takes, the last one today. */
  fillTo(count: number): Promise<void>;
  /** Bytes of a pill on disk, all columns, after the parts are merged. */
  bytesPerPill(table: string): Promise<number>;
  /** The same by column, the largest first. */
  bytesByColumn(table: string): Promise<{ readonly name: string; readonly bytes: number }[]>;
  /** Copies the pills into a table without codecs: what ClickHouse does by itself (LZ4). */
  copyWithoutCodecs(table: string): Promise<void>;
  close(): Promise<void>;
}

export function symbolOf(index: number): string {
  return `BENCH.${index}`;
}

/** Opens the tables of a namespace. @param epoch of its log */
export function openRows(url: string, namespace: string, epoch: string): Rows {
  const database = databaseName(namespace);
  const clickhouse = openClickHouse({ url, database, requestTimeoutMs: 300_000 });
  const select = async <T>(query: string): Promise<T[]> => {
    const answer = await clickhouse.query({ query, format: 'JSONEachRow' });
    return answer.json<T>();
  };
  const merge = (table: string) => clickhouse.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
  let filled = 0;
  return {
    clickhouse,
    async fillTo(count) {
      // As pills are: ids of 36 characters, four decimals, a few ms from timestamp to receive time.
      await clickhouse.command({
        query: `
          INSERT INTO pills (epoch, partition, offset, symbol, id, timestamp, received_at, order_time,
            gross_spread_percent, market_state, confidence, prev, source, late, backfill)
          SELECT '${epoch}', intDiv(number, 1) % ${SYMBOLS} % 4, number, 'BENCH.' || toString(number % ${SYMBOLS}),
            toString(generateUUIDv4()),
            now64(6) - toIntervalMicrosecond(intDiv(number, ${SYMBOLS}) * ${SPACING_US} + cityHash64(number) % 90000) AS at,
            at + toIntervalMicrosecond(3000 + cityHash64(number, 3) % 9000), at,
            round(0.1 + 0.05 * sin(number / 50000) + (cityHash64(number) % 1000) / 100000, 4),
            if(number % 10007 > 9000, 'closed', 'open'), (cityHash64(number, 1) % 10000) / 10000,
            number, 'bench', 0, 0
          FROM numbers(${filled}, ${count - filled})`,
      });
      filled = count;
      await merge('pills');
    },
    async bytesPerPill(table) {
      const [row] = await select<{ bytes: number }>(
        `SELECT sum(data_compressed_bytes) / sum(rows) AS bytes FROM system.parts
         WHERE database = '${database}' AND table = '${table}' AND active`,
      );
      return row!.bytes;
    },
    bytesByColumn: (table) =>
      select(
        `SELECT name, data_compressed_bytes / (SELECT count() FROM ${table}) AS bytes
         FROM system.columns WHERE database = '${database}' AND table = '${table}'
         ORDER BY bytes DESC`,
      ),
    async copyWithoutCodecs(table) {
      await clickhouse.command({
        query: `CREATE TABLE ${table} ENGINE = ReplacingMergeTree(rank) ORDER BY (symbol, timestamp, id)
                AS SELECT *, rank FROM pills`,
      });
      await merge(table);
    },
    close: () => clickhouse.close(),
  };
}
