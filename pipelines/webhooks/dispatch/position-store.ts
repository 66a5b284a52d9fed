import { sql, type Transaction } from 'kysely';
import { packSymbols, type Snapshot, unpackSymbols } from '../../../domain/order/snapshot.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';
import { FencedError, type OffsetRange } from '../fencing.ts';

/** The position of a partition, as last written. */
export interface StoredPosition {
  /** Name under which the partition was taken; writes under an older name have no effect. */
  readonly owner: string;
  readonly nextOffset: number;
  readonly triedBelow: number;
  readonly snapshot: Snapshot;
  /** Pills at or after `nextOffset` that are stored in messages, by endpoint. */
  readonly joined: ReadonlyMap<string, readonly OffsetRange[]>;
}

export type PositionStore = ReturnType<typeof createPositionStore>;

/**
 * Positions of the dispatcher in the log, kept in PostgreSQL.
 * @param process unique; every take of a partition gets an owner name below it
 */
export function createPositionStore(db: Database, epoch: string, process: string) {
  const owners = new Map<number, string>();
  let takes = 0;
  const ownerOf = (partition: number) => owners.get(partition) ?? '';
  const updateOwned = (partition: number) =>
    db
      .updateTable('webhook_positions')
      .where('epoch', '=', epoch)
      .where('partition', '=', partition)
      .where('owner', '=', ownerOf(partition));

  return {
    /** Takes a partition over. undefined = no dispatcher has ever read it. */
    async take(partition: number): Promise<StoredPosition | undefined> {
      takes += 1;
      const owner = `${process}/${takes}`;
      const take = (tx: Transaction<Tables>) => takePartition(tx, epoch, partition, owner);
      const taken = await db.transaction().execute(take);
      if (taken !== undefined) owners.set(partition, owner);
      return taken;
    },

    /** Writes the first position of a partition. */
    async begin(partition: number, { offset, symbols }: Snapshot): Promise<void> {
      await db
        .insertInto('webhook_positions')
        .values({
          epoch,
          partition,
          owner: process,
          next_offset: offset,
          tried_below: offset,
          snapshot_offset: offset,
          snapshot: await packSymbols(symbols),
        })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    },

    /**
     * Writes how far partitions are settled. @returns the partitions that another dispatcher has
     * taken
     */
    async advance(next: ReadonlyMap<number, number>): Promise<readonly number[]> {
      if (next.size === 0) return [];
      const partitions = [...next.keys()];
      const moved = await advancePositions(db, epoch, next, partitions.map(ownerOf));
      return partitions.filter((partition) => !moved.has(partition));
    },

    /** Allows pills before the offset to be attempted singly. @throws FencedError */
    async allowTries(partition: number, below: number): Promise<void> {
      const { numUpdatedRows } = await updateOwned(partition)
        .set({ tried_below: sql<string>`greatest(tried_below, ${below})` })
        .executeTakeFirst();
      if (numUpdatedRows === 0n) throw new FencedError([partition]);
    },

    async snapshot(partition: number, { offset, symbols }: Snapshot): Promise<void> {
      const snapshot = await packSymbols(symbols);
      await updateOwned(partition)
        .set({ snapshot_offset: offset, snapshot })
        .where('next_offset', '>=', String(offset))
        .execute();
    },
  };
}

async function takePartition(
  tx: Transaction<Tables>,
  epoch: string,
  partition: number,
  owner: string,
): Promise<StoredPosition | undefined> {
  const row = await tx
    .updateTable('webhook_positions')
    .set({ owner })
    .where('epoch', '=', epoch)
    .where('partition', '=', partition)
    .returning(['next_offset', 'tried_below', 'snapshot', 'snapshot_offset'])
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const rows = await tx
    .selectFrom('webhook_joined')
    .select(['endpoint_id', 'first_offset', 'last_offset'])
    .where('epoch', '=', epoch)
    .where('partition', '=', partition)
    .where('last_offset', '>=', row.next_offset)
    .execute();
  const joined = new Map<string, OffsetRange[]>();
  for (const { endpoint_id, first_offset, last_offset } of rows) {
    const ranges = joined.get(endpoint_id) ?? [];
    ranges.push({ first: Number(first_offset), last: Number(last_offset) });
    joined.set(endpoint_id, ranges);
  }
  return {
    owner,
    nextOffset: Number(row.next_offset),
    triedBelow: Number(row.tried_below),
    snapshot: { offset: Number(row.snapshot_offset), symbols: await unpackSymbols(row.snapshot!) },
    joined,
  };
}

/** @returns partitions whose rows still have the given owners */
async function advancePositions(
  db: Database,
  epoch: string,
  next: ReadonlyMap<number, number>,
  owners: readonly string[],
): Promise<ReadonlySet<number>> {
  const partitions = [...next.keys()];
  const { rows } = await sql<{ partition: number }>`
    WITH settled AS (
      SELECT * FROM unnest(${partitions}::int[], ${[...next.values()]}::bigint[],
        ${[...owners]}::text[]) AS s(partition, next_offset, owner)
    ), locked AS (
      SELECT partition FROM webhook_positions
      WHERE epoch = ${epoch} AND partition = ANY (${partitions}::int[])
      ORDER BY partition FOR NO KEY UPDATE
    ), moved AS (
      UPDATE webhook_positions p SET next_offset = greatest(p.next_offset, s.next_offset)
      FROM settled s JOIN locked USING (partition)
      WHERE p.epoch = ${epoch} AND p.partition = s.partition AND p.owner = s.owner
      RETURNING p.partition, p.next_offset
    ), done AS (
      DELETE FROM webhook_joined j USING moved m
      WHERE j.epoch = ${epoch} AND j.partition = m.partition AND j.last_offset < m.next_offset
    )
    SELECT partition FROM moved`.execute(db);
  return new Set(rows.map(({ partition }) => partition));
}
