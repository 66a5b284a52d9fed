import { symbolStateOf } from '../../../domain/order/latest-fold.ts';
import { openLatestTable } from '../../../domain/order/latest-table.ts';
import type { Snapshot } from '../../../domain/order/snapshot.ts';
import { BULK } from '../../../lib/kafka/pace.ts';

export type FirstStartDeps = Omit<Parameters<typeof openLatestTable>[0], 'pace' | 'onRecord'>;

/**
 * Where a partition starts that no dispatcher has ever read: at the end of the latest table, with
 * its state of the symbols. Earlier pills are history and are not posted.
 */
export async function firstStart(
  partition: number,
  low: number,
  deps: FirstStartDeps,
): Promise<Snapshot> {
  const table = await openLatestTable({
    ...deps,
    pace: BULK,
  });
  try {
    await table.caughtUp;
    const processed = table.processed().get(partition);
    if (processed === undefined) return { offset: low, symbols: new Map() };
    const rows = table.rowsOf(partition);
    const symbols = new Map(rows.map(({ pill }) => [pill.symbol, symbolStateOf(pill)]));
    return { offset: processed + 1, symbols };
  } finally {
    await table.close();
  }
}
