import {
  type ClickHouse,
  customersDatabaseName,
  decimalSeconds,
} from '../../lib/clickhouse/clickhouse-client.ts';
import type { Micros } from '../../schemas/timestamp.ts';

/** A record of the log that repeats an earlier pill; every reading of it gives the same row. */
export interface RepeatRow {
  readonly partition: number;
  readonly offset: number;
  /** The generator; empty if unknown. */
  readonly source: string;
  readonly receivedAt: Micros;
}

/** Creates the function that stores repeats, where analysts do not see them. */
export function createRepeatStore(clickhouse: ClickHouse, namespace: string, epoch: string) {
  const table = `${customersDatabaseName(namespace)}.repeats`;
  return async (repeats: readonly RepeatRow[]): Promise<void> => {
    await clickhouse.insert({
      table,
      columns: ['epoch', 'partition', 'offset', 'source', 'received_at'],
      values: repeats.map(({ partition, offset, source, receivedAt: at }) => {
        return [epoch, partition, offset, source, decimalSeconds(at)];
      }),
      format: 'JSONCompactEachRow',
      clickhouse_settings: { async_insert: 0 },
    });
  };
}
