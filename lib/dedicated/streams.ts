import { sql, type Transaction } from 'kysely';
import { newId } from '../access/id.ts';
import { lockAccount } from '../accounts/account-row.ts';
import { type Requester, writeAudit } from '../accounts/audit.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { lockPlaces, type PortRange, takePort } from './port.ts';
import { processesThatFit, readRoom } from './room.ts';
import { type DedicatedStream, LIVE, selectStreams, streamOf } from './stream-row.ts';

export const DEDICATED_LIMITS = {
  /** Of an account at a time; also those in a rotation's overlap. Each is a process. */
  perAccountMax: 10,
  /** Made by an account within an hour, rotations included: every one starts a process. */
  madePerHourMax: 60,
  labelCharsMax: 100,
  overlapSMax: 7 * 86_400,
  overlapSDefault: 3_600,
} as const;

export interface NewDedicatedStream extends Requester {
  readonly accountId: string;
  readonly label: string;
}

export interface DedicatedRequest extends Requester {
  readonly accountId: string;
  readonly name: string;
}

export interface DedicatedRotation extends DedicatedRequest {
  /** How long the old one goes on, 0 to 7 days. */
  readonly overlapS: number;
}

/** Why there is no place for one more. */
export type NoRoom =
  | { readonly kind: 'limit' }
  | { readonly kind: 'too_many_made' }
  /** All accounts together have `max`: no more processes fit. */
  | { readonly kind: 'full'; readonly max: number }
  /** All ports of the range are taken. */
  | { readonly kind: 'no_port' };

export type DedicatedCreated = { readonly kind: 'ok'; readonly stream: DedicatedStream } | NoRoom;

export type DedicatedRotated =
  | { readonly kind: 'ok'; readonly stream: DedicatedStream; readonly old: DedicatedStream }
  /** It has a next one already. */
  | { readonly kind: 'rotated' }
  | NoRoom;

/** Dedicated sockets of accounts. Another account's is as one that does not exist: undefined. */
export interface DedicatedStreams {
  create(wanted: NewDedicatedStream): Promise<DedicatedCreated>;
  /** Live ones, oldest first. */
  list(accountId: string): Promise<readonly DedicatedStream[]>;
  get(accountId: string, name: string): Promise<DedicatedStream | undefined>;
  /** Makes one with another name and port; the old one ends after the overlap. */
  rotate(rotation: DedicatedRotation): Promise<DedicatedRotated | undefined>;
  /** Ends one at once. */
  remove(request: DedicatedRequest): Promise<DedicatedStream | undefined>;
}

/**
 * Every change is in the audit log, and told to the supervisor by a trigger of the table.
 * @param processesMax of all accounts together; fewer where PostgreSQL has no connections for them
 */
export function createDedicatedStreams(
  db: Database,
  ports: PortRange,
  processesMax = processesThatFit(),
): DedicatedStreams {
  const place = { ports, processesMax };
  return {
    create: (wanted) =>
      db.transaction().execute(async (tx): Promise<DedicatedCreated> => {
        await lockAccount(tx, wanted.accountId);
        const room = await findRoom(tx, wanted.accountId, place);
        if (room.kind !== 'ok') return room;
        const name = await insert(tx, wanted, room.port);
        await audit(tx, wanted, 'dedicated_stream.created', name, { label: wanted.label });
        return { kind: 'ok', stream: (await read(tx, wanted.accountId, name))! };
      }),

    list: async (accountId) => {
      const rows = await selectStreams(db)
        .where('account_id', '=', accountId)
        .where(LIVE)
        .orderBy('d.created_at')
        .limit(DEDICATED_LIMITS.perAccountMax)
        .execute();
      return rows.map(streamOf);
    },

    get: (accountId, name) => read(db, accountId, name),

    rotate: (rotation) =>
      db
        .transaction()
        .execute(async (tx): Promise<DedicatedRotated | undefined> => {
          const { accountId, name, overlapS } = rotation;
          await lockAccount(tx, accountId);
          const before = await read(tx, accountId, name);
          if (before === undefined) return undefined;
          if (before.replacedBy !== undefined) return { kind: 'rotated' };
          // Without an overlap the new one takes the place of the old one.
          if (overlapS === 0) await end(tx, name);
          const room = await findRoom(tx, accountId, place);
          if (room.kind !== 'ok') throw new NoRoomError(room);
          const next = await insert(tx, { ...rotation, label: before.label }, room.port);
          await tx
            .updateTable('dedicated_streams')
            .set({
              replaced_by: next,
              expires_at: sql<Date>`now() + make_interval(secs => ${overlapS})`,
            })
            .where('name', '=', name)
            .execute();
          const detail = { replaced_by: next, overlap_s: overlapS };
          await audit(tx, rotation, 'dedicated_stream.rotated', name, detail);
          const stream = (await read(tx, accountId, next))!;
          const old = { ...before, ...(await endsOf(tx, name)), replacedBy: next };
          return { kind: 'ok', stream, old };
        })
        .catch(roomOrThrow),

    remove: (request) =>
      db.transaction().execute(async (tx) => {
        const { accountId, name } = request;
        await lockAccount(tx, accountId);
        const before = await read(tx, accountId, name);
        if (before === undefined) return undefined;
        await end(tx, name);
        await audit(tx, request, 'dedicated_stream.removed', name, {});
        return { ...before, ...(await endsOf(tx, name)) };
      }),
  };
}

/** Takes a transaction back and says why. */
class NoRoomError extends Error {
  readonly room: NoRoom;
  constructor(room: NoRoom) {
    super(room.kind);
    this.room = room;
  }
}

function roomOrThrow(error: unknown): NoRoom {
  if (error instanceof NoRoomError) return error.room;
  throw error;
}

async function findRoom(
  tx: Transaction<Tables>,
  accountId: string,
  { ports, processesMax }: { readonly ports: PortRange; readonly processesMax: number },
): Promise<{ readonly kind: 'ok'; readonly port: number } | NoRoom> {
  const { live, made } = await tx
    .selectFrom('dedicated_streams')
    .select(sql<string>`count(*) FILTER (WHERE ${LIVE})`.as('live'))
    .select(sql<string>`count(*) FILTER (WHERE created_at > now() - interval '1 hour')`.as('made'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  if (Number(live) >= DEDICATED_LIMITS.perAccountMax) return { kind: 'limit' };
  if (Number(made) >= DEDICATED_LIMITS.madePerHourMax) return { kind: 'too_many_made' };
  await lockPlaces(tx);
  const max = await readRoom(tx, processesMax);
  const all = await tx
    .selectFrom('dedicated_streams')
    .select(sql<string>`count(*)`.as('live'))
    .where(LIVE)
    .executeTakeFirstOrThrow();
  if (Number(all.live) >= max) return { kind: 'full', max };
  const port = await takePort(tx, ports);
  return port === undefined ? { kind: 'no_port' } : { kind: 'ok', port };
}

async function insert(
  tx: Transaction<Tables>,
  { accountId, label, actor }: NewDedicatedStream,
  port: number,
): Promise<string> {
  const name = newId('ded');
  const row = { name, account_id: accountId, label, port, created_by: actor };
  await tx.insertInto('dedicated_streams').values(row).execute();
  return name;
}

async function end(tx: Transaction<Tables>, name: string): Promise<void> {
  await tx
    .updateTable('dedicated_streams')
    .set({ removed_at: sql<Date>`now()` })
    .where('name', '=', name)
    .execute();
}

async function endsOf(tx: Transaction<Tables>, name: string) {
  const row = await selectStreams(tx).where('d.name', '=', name).executeTakeFirstOrThrow();
  const { expiresAt, removedAt, state, reason, since } = streamOf(row);
  return { expiresAt, removedAt, state, reason, since };
}

async function read(
  db: Database | Transaction<Tables>,
  accountId: string,
  name: string,
): Promise<DedicatedStream | undefined> {
  const row = await selectStreams(db)
    .where('account_id', '=', accountId)
    .where('d.name', '=', name)
    .where(LIVE)
    .executeTakeFirst();
  return row === undefined ? undefined : streamOf(row);
}

function audit(
  tx: Transaction<Tables>,
  { accountId, actor, address }: Requester & { readonly accountId: string },
  action: string,
  target: string,
  detail: object,
): Promise<void> {
  return writeAudit(tx, { accountId, actor, address, action, target, detail });
}
