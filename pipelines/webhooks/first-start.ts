import type { KafkaClient } from '../../lib/kafka/client.ts';
import { BULK } from '../../lib/kafka/pace.ts';
import { openLatestTable } from '../../lib/latest-table.ts';
import type { Log } from '../../lib/log.ts';
import { symbolStateOf } from '../../lib/order/latest-fold.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { groupName } from '../../schemas/topics.ts';
import type { Snapshot } from './store.ts';

/**
 * Where a partition begins that nobody ever read for webhooks: where the latest table stands now,
 * with its state of the symbols. What came before is history.
 */
export async function firstStart(
  partition: number,
  low: number,
  parts: {
    readonly client: KafkaClient;
    readonly schemas: SchemaClient;
    readonly namespace: string;
    readonly epoch: string;
    readonly log: Log;
    onFatal(error: Error): void;
  },
): Promise<Snapshot> {
  const table = await openLatestTable({
    ...parts,
    groupPrefix: groupName(parts.namespace, 'webhooks.first'),
    pace: BULK,
  });
  try {
    await table.caughtUp;
    const processed = table.processed().get(partition);
    const symbols = new Map(
      table.rowsOf(partition).map(({ pill }) => [pill.symbol, symbolStateOf(pill)]),
    );
    return processed === undefined
      ? { offset: low, symbols: new Map() }
      : { offset: processed + 1, symbols };
  } finally {
    await table.close();
  }
}
