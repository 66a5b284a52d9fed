import type { Transaction } from 'kysely';
import type { Tables } from '../../lib/postgres/tables.ts';

/** Offsets of one partition, both included. */
export interface OffsetRange {
  readonly first: number;
  readonly last: number;
}

/** Offsets of a partition, with the owner name under which the partition was taken. */
export interface OwnedRange extends OffsetRange {
  readonly partition: number;
  readonly owner: string;
}

/** Another dispatcher has taken a partition: this process's writes for its pills have no effect. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
  readonly partitions: readonly number[];

  constructor(partitions: readonly number[]) {
    super(`Another dispatcher has taken partition ${partitions.join(', ')}.`);
    this.partitions = partitions;
  }
}

/**
 * Holds the partitions of the ranges until the transaction ends. Rows are locked in order, so that
 * two transactions never wait for each other in a circle.
 * @throws FencedError when one has another owner
 */
export async function fence(
  tx: Transaction<Tables>,
  epoch: string,
  ranges: readonly OwnedRange[],
): Promise<void> {
  const claimed = new Map(
    ranges.map(({ partition, owner }) => [`${partition} ${owner}`, partition]),
  );
  if (claimed.size === 0) return;
  const rows = await tx
    .selectFrom('webhook_positions')
    .select(['partition', 'owner'])
    .where('epoch', '=', epoch)
    .where('partition', 'in', [...new Set(claimed.values())])
    .orderBy('partition')
    .forShare()
    .execute();
  const owned = new Set(rows.map(({ partition, owner }) => `${partition} ${owner}`));
  const lost = [...claimed].filter(([name]) => !owned.has(name));
  if (lost.length > 0) throw new FencedError(lost.map(([, partition]) => partition));
}
