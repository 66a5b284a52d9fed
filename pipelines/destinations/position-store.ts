import { type RawBuilder, type Selectable, sql } from 'kysely';
import { filterOf } from '../../domain/destinations/destination.ts';
import { packSymbols, type Snapshot, unpackSymbols } from '../../domain/order/snapshot.ts';
import type { EndpointFilter } from '../../domain/webhooks/endpoints/webhook-endpoint.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { Micros } from '../../schemas/timestamp.ts';

/** The position of a partition, as last written. */
export interface StoredPosition {
  readonly nextOffset: number;
  readonly publishedEnd: number | undefined;
  /** A piece that may be delivered already: its repeat has the same end and filter. */
  readonly plan: Plan | undefined;
  readonly snapshot: Snapshot;
}

/** The piece that starts at the position. */
export interface Plan {
  readonly endOffset: number;
  readonly filter: EndpointFilter;
}

/** How far a partition has come. */
export interface Progress {
  readonly nextOffset: number;
  /** Set if a piece with pills was delivered. */
  readonly delivered: { readonly receivedAt: Micros } | undefined;
  readonly snapshot: Snapshot | undefined;
}

/** Another run of a process owns the destination: what this one writes has no effect. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

export type PositionStore = ReturnType<typeof createPositionStore>;

/**
 * Positions of one destination. Every write holds the destination's row and has no effect once
 * another owner has taken it, so a process that was paused can neither plan nor move a piece; it may
 * deliver again the piece that it has planned.
 */
export function createPositionStore(
  db: Database,
  of: { readonly destinationId: string; readonly epoch: string; readonly owner: string },
) {
  const { destinationId, epoch, owner } = of;
  const write = async (statement: RawBuilder<unknown>) => {
    const { numAffectedRows = 0n } = await sql`
      WITH held AS (
        SELECT id FROM destinations WHERE id = ${destinationId} AND owner = ${owner} FOR SHARE
      ) ${statement}`.execute(db);
    if (numAffectedRows === 0n) throw new LeaseLostError(`${destinationId} has another owner.`);
  };
  const where = (partition: number) => sql`destination_id IN (SELECT id FROM held)
    AND epoch = ${epoch} AND partition = ${partition}`;
  return {
    /** By partition; a partition without a row was never read. */
    async read(): Promise<ReadonlyMap<number, StoredPosition>> {
      const rows = await db
        .selectFrom('destination_positions')
        .selectAll()
        .where('destination_id', '=', destinationId)
        .where('epoch', '=', epoch)
        .execute();
      return new Map(
        await Promise.all(rows.map(async (row) => [row.partition, await positionOf(row)] as const)),
      );
    },

    /** Writes the first position of a partition. @throws LeaseLostError */
    async begin(partition: number, { offset, symbols }: Snapshot): Promise<void> {
      const packed = await packSymbols(symbols);
      await write(sql`INSERT INTO destination_positions
        (destination_id, epoch, partition, next_offset, snapshot_offset, snapshot)
        SELECT id, ${epoch}, ${partition}::int, ${offset}::bigint, ${offset}::bigint, ${packed} FROM held
        ON CONFLICT (destination_id, epoch, partition) DO UPDATE SET next_offset = ${offset}::bigint,
          snapshot_offset = ${offset}::bigint, snapshot = ${packed}, plan_end = null,
          plan_filter = null, published_end = null`);
    },

    /** Fixes the piece that starts at the position, before it is delivered. @throws LeaseLostError */
    plan: (partition: number, firstOffset: number, { endOffset, filter }: Plan) =>
      write(sql`UPDATE destination_positions
        SET next_offset = ${firstOffset}, plan_end = ${endOffset},
          plan_filter = ${JSON.stringify(filter)}::jsonb
        WHERE ${where(partition)}`),

    /** Moves the position past what is delivered. @throws LeaseLostError */
    async advance(partition: number, progress: Progress): Promise<void> {
      const { nextOffset, delivered, snapshot } = progress;
      const ofSnapshot =
        snapshot === undefined
          ? sql``
          : sql`, snapshot_offset = ${snapshot.offset},
              snapshot = ${await packSymbols(snapshot.symbols)}`;
      const ofPiece =
        delivered === undefined
          ? sql``
          : sql`, published_end = ${nextOffset}, delivered_until =
              greatest(delivered_until, to_timestamp(${delivered.receivedAt / 1_000_000}))`;
      await write(sql`UPDATE destination_positions
        SET next_offset = ${nextOffset}, plan_end = null, plan_filter = null ${ofSnapshot} ${ofPiece}
        WHERE ${where(partition)}`);
    },
  };
}

async function positionOf(
  row: Selectable<Tables['destination_positions']>,
): Promise<StoredPosition> {
  const { plan_end: planEnd, plan_filter: filter, published_end: publishedEnd } = row;
  const plan =
    planEnd === null || filter === null
      ? undefined
      : { endOffset: Number(planEnd), filter: filterOf(filter) };
  return {
    nextOffset: Number(row.next_offset),
    publishedEnd: publishedEnd === null ? undefined : Number(publishedEnd),
    plan,
    snapshot: {
      offset: Number(row.snapshot_offset),
      symbols: await unpackSymbols(row.snapshot),
    },
  };
}
