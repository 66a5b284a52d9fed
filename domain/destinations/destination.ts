import { type Selectable, sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { Seal } from '../access/sealing.ts';
import type { EndpointFilter } from '../webhooks/endpoints/webhook-endpoint.ts';

export type DestinationRow = Selectable<Tables['destinations']>;

/** A destination as its owner sees it, without its credentials. */
export type Destination = ReturnType<typeof destinationOf>;

export function selectDestinations(db: Database | Transaction<Tables>, accountId: string) {
  return db.selectFrom('destinations').selectAll().where('account_id', '=', accountId);
}

/** Returns undefined also for another account's destination. */
export async function readDestination(
  db: Database | Transaction<Tables>,
  accountId: string,
  id: string,
): Promise<Destination | undefined> {
  const row = await selectDestinations(db, accountId).where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : destinationOf(row);
}

export function destinationOf(row: DestinationRow) {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    type: row.type,
    settings: row.settings as Readonly<Record<string, unknown>>,
    filter: filterOf(row.filter),
    version: row.version,
    credentialVersion: row.credential_version,
    credentialChangedAt: row.credential_changed_at,
    pausedBy: row.paused_by ?? undefined,
    failingSince: row.failing_since ?? undefined,
    faultSince: row.fault_since ?? undefined,
    lastDeliveredAt: row.last_delivered_at ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** JSON leaves out bounds that are not set. */
export function filterOf(stored: Readonly<Record<string, unknown>>): EndpointFilter {
  return {
    minConfidence: undefined,
    minSpread: undefined,
    maxSpread: undefined,
    ...stored,
  } as EndpointFilter;
}

export function sealSecrets(seal: Seal, secrets: object, destinationId: string): Buffer {
  return seal.seal(Buffer.from(JSON.stringify(secrets), 'utf8'), destinationId);
}

/** @throws SealError */
export function openSecrets(seal: Seal, row: Pick<DestinationRow, 'id' | 'sealed'>): object {
  return JSON.parse(seal.open(row.sealed, row.id).toString('utf8'));
}

/** How far a destination has come in the partitions of an epoch. */
export interface DeliveryPosition {
  /** By partition, the first offset that is not delivered yet. */
  readonly next: ReadonlyMap<number, number>;
  /** Receive time of the newest pill that was delivered. */
  readonly deliveredUntil: Date | undefined;
}

/** The positions of destinations in an epoch, by id. */
export async function readPositions(
  db: Database,
  epoch: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, DeliveryPosition>> {
  const { rows } = await sql<{ id: string; next: Record<string, number>; until: Date | null }>`
    SELECT destination_id AS id, jsonb_object_agg(partition, next_offset) AS next,
      max(delivered_until) AS until
    FROM destination_positions WHERE epoch = ${epoch} AND destination_id = ANY(${[...ids]}::text[])
    GROUP BY destination_id`.execute(db);
  return new Map(
    rows.map(({ id, next, until }) => [
      id,
      {
        next: new Map(
          Object.entries(next).map(([partition, offset]) => [Number(partition), offset]),
        ),
        deliveredUntil: until ?? undefined,
      },
    ]),
  );
}
