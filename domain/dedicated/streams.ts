import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import { lockAccount } from '../accounts/account-row.ts';
import { type AccountRequest, writeAudit } from '../accounts/audit.ts';
import {
  lockCapacity,
  type PortRange,
  processesThatFit,
  readCapacity,
  takePort,
} from './capacity.ts';
import { type DedicatedStream, IS_LIVE_STREAM, selectStreams, streamOf } from './stream-row.ts';

export const DEDICATED_LIMITS = {
  /** Live sockets per account, including those in a rotation's overlap. Each one is a process. */
  perAccountMax: 10,
  /** Sockets made per account and hour, including rotations: each one starts a process. */
  madePerHourMax: 60,
  labelCharsMax: 100,
  overlapSMax: 7 * 86_400,
  overlapSDefault: 3_600,
} as const;

type NewDedicatedStream = AccountRequest & { readonly label: string };
type DedicatedRequest = AccountRequest & { readonly name: string };
/** `overlapS`: how long the old socket keeps working, 0 to 7 days. */
type DedicatedRotation = DedicatedRequest & { readonly overlapS: number };

/** Why no further socket can be made. */
export type NoCapacity =
  | { readonly kind: 'limit' }
  | { readonly kind: 'too_many_made' }
  /** All accounts together have `max` sockets. */
  | { readonly kind: 'full'; readonly max: number }
  /** All ports of the range are in use. */
  | { readonly kind: 'no_port' };

export type DedicatedStreams = ReturnType<typeof createDedicatedStreams>;

/**
 * Dedicated sockets of accounts. Another account's socket counts as unknown: undefined. Every change is
 * written to the audit log; a trigger of the table notifies the supervisor.
 * @param processesMax for all accounts together; PostgreSQL's connections may allow fewer
 */
export function createDedicatedStreams(
  db: Database,
  ports: PortRange,
  processesMax = processesThatFit(),
) {
  const capacity = { ports, processesMax };
  return {
    create: (wanted: NewDedicatedStream) =>
      inTurn(db, wanted.accountId, async (tx) => {
        await lockAccount(tx, wanted.accountId);
        const reserved = await reserveCapacity(tx, wanted.accountId, capacity);
        if (reserved.kind !== 'ok') return reserved;
        const name = await insert(tx, wanted, reserved.port);
        await audit(tx, wanted, 'dedicated_stream.created', name, { label: wanted.label });
        return { kind: 'ok' as const, stream: (await read(tx, wanted.accountId, name))! };
      }),

    /** Live sockets, oldest first. */
    async list(accountId: string): Promise<readonly DedicatedStream[]> {
      const rows = await selectStreams(db)
        .where('account_id', '=', accountId)
        .where(IS_LIVE_STREAM)
        .orderBy('d.created_at')
        .limit(DEDICATED_LIMITS.perAccountMax)
        .execute();
      return rows.map(streamOf);
    },

    get: (accountId: string, name: string) => read(db, accountId, name),

    /** Makes a socket with a new name and port; the old one ends after the overlap. */
    async rotate(rotation: DedicatedRotation) {
      try {
        return await inTurn(db, rotation.accountId, (tx) => rotateStream(tx, rotation, capacity));
      } catch (error) {
        if (error instanceof NoCapacityError) return error.reason;
        throw error;
      }
    },

    /** Ends a socket at once. */
    remove: (request: DedicatedRequest) =>
      inTurn(db, request.accountId, async (tx) => {
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

async function rotateStream(
  tx: Transaction<Tables>,
  rotation: DedicatedRotation,
  capacity: Capacity,
) {
  const { accountId, name, overlapS } = rotation;
  await lockAccount(tx, accountId);
  const before = await read(tx, accountId, name);
  if (before === undefined) return undefined;
  if (before.replacedBy !== undefined) return { kind: 'rotated' as const };
  // Without an overlap the new socket takes the place of the old one.
  if (overlapS === 0) await end(tx, name);
  const reserved = await reserveCapacity(tx, accountId, capacity);
  if (reserved.kind !== 'ok') throw new NoCapacityError(reserved);
  const next = await insert(tx, { ...rotation, label: before.label }, reserved.port);
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
  return { kind: 'ok' as const, stream, old };
}

/** Rolls back the transaction and carries the reason. */
class NoCapacityError extends Error {
  readonly reason: NoCapacity;
  constructor(reason: NoCapacity) {
    super(reason.kind);
    this.reason = reason;
  }
}

interface Capacity {
  readonly ports: PortRange;
  readonly processesMax: number;
}

async function reserveCapacity(
  tx: Transaction<Tables>,
  accountId: string,
  { ports, processesMax }: Capacity,
): Promise<{ readonly kind: 'ok'; readonly port: number } | NoCapacity> {
  const { live, made } = await tx
    .selectFrom('dedicated_streams')
    .select(sql<string>`count(*) FILTER (WHERE ${IS_LIVE_STREAM})`.as('live'))
    .select(sql<string>`count(*) FILTER (WHERE created_at > now() - interval '1 hour')`.as('made'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  if (Number(live) >= DEDICATED_LIMITS.perAccountMax) return { kind: 'limit' };
  if (Number(made) >= DEDICATED_LIMITS.madePerHourMax) return { kind: 'too_many_made' };
  await lockCapacity(tx);
  const max = await readCapacity(tx, processesMax);
  const all = await tx
    .selectFrom('dedicated_streams')
    .select(sql<string>`count(*)`.as('live'))
    .where(IS_LIVE_STREAM)
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
    .where(IS_LIVE_STREAM)
    .executeTakeFirst();
  return row === undefined ? undefined : streamOf(row);
}

function audit(
  tx: Transaction<Tables>,
  { accountId, actor, address }: AccountRequest,
  action: string,
  target: string,
  detail: object,
): Promise<void> {
  return writeAudit(tx, { accountId, actor, address, action, target, detail });
}
