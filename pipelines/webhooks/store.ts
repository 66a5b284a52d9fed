import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { sql, type Transaction } from 'kysely';
import type { SymbolState } from '../../lib/order/judge.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { wakeEndpoints } from '../../lib/webhooks/queue.ts';
import {
  type Change,
  insertDeliveries,
  type OffsetRange,
  type OwnedRange,
  putOff,
  removeDelivered,
} from './changes.ts';

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** Where a partition is, as it was written last. */
export interface KeptPosition {
  /** Name under which it was taken: what was read under another one has no effect any more. */
  readonly owner: string;
  readonly nextOffset: number;
  readonly triedBelow: number;
  readonly snapshot: Snapshot;
  /** Pills at or after `nextOffset` that are kept as messages, by endpoint. */
  readonly joined: ReadonlyMap<string, readonly OffsetRange[]>;
}

/** State of the symbols just before an offset. */
export interface Snapshot {
  readonly offset: number;
  readonly symbols: Map<string, SymbolState>;
}

/** Another dispatcher reads a partition now: what we say of its pills has no effect. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
  readonly partitions: readonly number[];

  constructor(partitions: readonly number[]) {
    super(`Another dispatcher has taken partition ${partitions.join(', ')}.`);
    this.partitions = partitions;
  }
}

/** What the dispatcher keeps in PostgreSQL of the log. */
export interface WebhookStore {
  /** Takes a partition over. undefined = nobody ever read it. */
  take(partition: number): Promise<KeptPosition | undefined>;
  /** The first position of a partition. */
  begin(partition: number, start: Snapshot): Promise<void>;
  /** Writes how far partitions are settled. @returns those that another dispatcher has taken */
  advance(next: ReadonlyMap<number, number>): Promise<readonly number[]>;
  /** No pill at or after the offset was attempted by itself. @throws FencedError */
  allowTries(partition: number, below: number): Promise<void>;
  snapshot(partition: number, state: Snapshot): Promise<void>;
  /** Does all in one transaction. @throws FencedError: then none of it was done */
  apply(changes: readonly Change[]): Promise<void>;
}

/** @param process unique; each taking of a partition has a name of its own below it */
export function createWebhookStore(db: Database, epoch: string, process: string): WebhookStore {
  const owners = new Map<number, string>();
  let takes = 0;

  /** Locks positions in order: two transactions never wait for each other in a circle. */
  const fence = async (tx: Transaction<Tables>, ranges: readonly OwnedRange[]) => {
    const wanted = new Map(
      ranges.map(({ partition, owner }) => [`${partition} ${owner}`, partition]),
    );
    if (wanted.size === 0) return;
    const rows = await tx
      .selectFrom('webhook_positions')
      .select(['partition', 'owner'])
      .where('epoch', '=', epoch)
      .where('partition', 'in', [...new Set(wanted.values())])
      .orderBy('partition')
      .forShare()
      .execute();
    const owned = new Set(rows.map(({ partition, owner }) => `${partition} ${owner}`));
    const lost = [...wanted].filter(([name]) => !owned.has(name));
    if (lost.length > 0) throw new FencedError(lost.map(([, partition]) => partition));
  };
  const ownerOf = (partition: number) => owners.get(partition) ?? '';

  return {
    take: (partition) =>
      db.transaction().execute(async (tx) => {
        takes += 1;
        const owner = `${process}/${takes}`;
        const row = await tx
          .updateTable('webhook_positions')
          .set({ owner })
          .where('epoch', '=', epoch)
          .where('partition', '=', partition)
          .returning(['next_offset', 'tried_below', 'snapshot', 'snapshot_offset'])
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const joined = await tx
          .selectFrom('webhook_joined')
          .select(['endpoint_id', 'first_offset', 'last_offset'])
          .where('epoch', '=', epoch)
          .where('partition', '=', partition)
          .where('last_offset', '>=', row.next_offset)
          .execute();
        const ranges = new Map<string, OffsetRange[]>();
        for (const { endpoint_id, first_offset, last_offset } of joined) {
          const of = ranges.get(endpoint_id) ?? [];
          of.push({ first: Number(first_offset), last: Number(last_offset) });
          ranges.set(endpoint_id, of);
        }
        owners.set(partition, owner);
        return {
          owner,
          nextOffset: Number(row.next_offset),
          triedBelow: Number(row.tried_below),
          snapshot: {
            offset: Number(row.snapshot_offset),
            symbols: await readSymbols(row.snapshot!),
          },
          joined: ranges,
        };
      }),

    async begin(partition, { offset, symbols }) {
      await db
        .insertInto('webhook_positions')
        .values({
          ...{ epoch, partition, owner: process, next_offset: offset, tried_below: offset },
          ...{ snapshot_offset: offset, snapshot: await writeSymbols(symbols) },
        })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    },

    async advance(next) {
      if (next.size === 0) return [];
      const partitions = [...next.keys()];
      const offsets = [...next.values()];
      const names = partitions.map(ownerOf);
      const { rows } = await sql<{ partition: number }>`
        WITH settled AS (
          SELECT * FROM unnest(${partitions}::int[], ${offsets}::bigint[], ${names}::text[])
            AS s(partition, next_offset, owner)
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
      const moved = new Set(rows.map(({ partition }) => partition));
      return partitions.filter((partition) => !moved.has(partition));
    },

    async allowTries(partition, below) {
      const { numUpdatedRows } = await db
        .updateTable('webhook_positions')
        .set({ tried_below: sql<string>`greatest(tried_below, ${below})` })
        .where('epoch', '=', epoch)
        .where('partition', '=', partition)
        .where('owner', '=', ownerOf(partition))
        .executeTakeFirst();
      if (numUpdatedRows === 0n) throw new FencedError([partition]);
    },

    async snapshot(partition, { offset, symbols }) {
      const snapshot = await writeSymbols(symbols);
      await db
        .updateTable('webhook_positions')
        .set({ snapshot_offset: offset, snapshot })
        .where('epoch', '=', epoch)
        .where('partition', '=', partition)
        .where('owner', '=', ownerOf(partition))
        .where('next_offset', '>=', String(offset))
        .execute();
    },

    apply: (changes) =>
      db.transaction().execute(async (tx) => {
        const messages = changes.flatMap((change) => (change.kind === 'keep' ? [change.kept] : []));
        const joined = messages.flatMap((kept) =>
          kept.joined.map((range) => ({ endpointId: kept.endpointId, ...range })),
        );
        await fence(tx, joined);
        if (messages.length > 0) await insertDeliveries(tx, messages);
        if (joined.length > 0) await insertJoined(tx, epoch, joined);
        await removeDelivered(
          tx,
          changes.flatMap((change) => (change.kind === 'delivered' ? [change] : [])),
        );
        const failed = changes.flatMap((change) => (change.kind === 'failed' ? [change] : []));
        await putOff(tx, failed);
        const woken = [...messages.filter(({ wakes }) => wakes), ...failed];
        await wakeEndpoints(tx, [...new Set(woken.map(({ endpointId }) => endpointId))]);
      }),
  };
}

async function insertJoined(
  tx: Transaction<Tables>,
  epoch: string,
  joined: readonly (OwnedRange & { readonly endpointId: string })[],
): Promise<void> {
  await sql`
    INSERT INTO webhook_joined (epoch, partition, endpoint_id, first_offset, last_offset)
    SELECT ${epoch}, j.partition, j.endpoint_id, j.first_offset, j.last_offset
    FROM unnest(${joined.map(({ partition }) => partition)}::int[],
      ${joined.map(({ endpointId }) => endpointId)}::text[],
      ${joined.map(({ first }) => first)}::bigint[], ${joined.map(({ last }) => last)}::bigint[])
      AS j(partition, endpoint_id, first_offset, last_offset)
    JOIN webhook_endpoints e ON e.id = j.endpoint_id
    ON CONFLICT DO NOTHING`.execute(tx);
}

async function writeSymbols(symbols: ReadonlyMap<string, SymbolState>): Promise<Buffer> {
  const rows = [...symbols].map(([symbol, { order, offset, lastLive }]) => [
    ...[symbol, order, offset, lastLive],
  ]);
  return zip(JSON.stringify(rows));
}

async function readSymbols(bytes: Buffer): Promise<Map<string, SymbolState>> {
  const rows: [string, number, number, number | null][] = JSON.parse(
    (await unzip(bytes)).toString('utf8'),
  );
  return new Map(
    rows.map(([symbol, order, offset, lastLive]) => [symbol, { order, offset, lastLive }]),
  );
}
