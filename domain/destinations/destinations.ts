import { isDeepStrictEqual } from 'node:util';
import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import type { Seal } from '../access/sealing.ts';
import { lockAccount } from '../accounts/account-row.ts';
import { type AccountRequest, auditEntry, writeAudit } from '../accounts/audit.ts';
import { packSymbols, type Snapshot } from '../order/snapshot.ts';
import { filterFaults } from '../webhooks/endpoints/endpoint-check.ts';
import type { EndpointFilter } from '../webhooks/endpoints/webhook-endpoint.ts';
import type { UrlPolicy } from '../webhooks/send/url-policy.ts';
import {
  type Destination,
  destinationOf,
  openSecrets,
  readDestination,
  sealSecrets,
  selectDestinations,
} from './destination.ts';
import type { AnyDestinationType, SettingFault } from './destination-type.ts';
import { DESTINATION_LIMITS as LIMITS } from './limits.ts';

interface Fault extends Omit<SettingFault, 'setting'> {
  readonly pointer: string;
}

/** By partition: where a destination starts, with the state of the symbols there. */
export interface StartPositions {
  readonly epoch: string;
  readonly snapshots: ReadonlyMap<number, Snapshot>;
}

interface DestinationsDeps {
  readonly db: Database;
  readonly seal: Seal;
  readonly policy: UrlPolicy;
}

interface NewDestination extends AccountRequest {
  readonly type: AnyDestinationType;
  readonly name: string;
  readonly settings: object;
  readonly secrets: object;
  readonly filter: EndpointFilter;
  readonly start: StartPositions;
}

type OwnedRequest = AccountRequest & { readonly destinationId: string };

export interface DestinationChange extends OwnedRequest {
  readonly type: AnyDestinationType;
  readonly name?: string | undefined;
  readonly settings?: object | undefined;
  readonly secrets?: object | undefined;
  readonly filter: Partial<EndpointFilter>;
}

interface Invalid {
  readonly kind: 'invalid';
  readonly faults: readonly Fault[];
}

export type Destinations = ReturnType<typeof createDestinations>;

/**
 * Destinations of accounts. The id of another account's destination counts as unknown: undefined. A
 * change raises the version of the row, which running processes read every second.
 */
export function createDestinations(deps: DestinationsDeps) {
  const { db, seal, policy } = deps;
  return {
    /** Oldest first. */
    async list(accountId: string): Promise<readonly Destination[]> {
      const rows = await selectDestinations(db, accountId)
        .orderBy('created_at')
        .orderBy('id')
        .execute();
      return rows.map(destinationOf);
    },

    get: (accountId: string, id: string) => readDestination(db, accountId, id),

    async create(wanted: NewDestination) {
      const faults = [
        ...filterFaults(wanted.filter),
        ...settingFaults(wanted.type, wanted.settings, policy),
      ];
      if (faults.length > 0) return { kind: 'invalid', faults } satisfies Invalid;
      const packed = await pack(wanted.start);
      return inTurn(db, wanted.accountId, (tx) => create(tx, seal, wanted, packed));
    },

    /** Changes settings, filter or credentials; in effect within about a second. */
    change: (change: DestinationChange) =>
      inTurn(db, change.accountId, (tx) => changeDestination(tx, deps, change)),

    pause: (request: OwnedRequest) => inTurn(db, request.accountId, (tx) => pause(tx, request)),

    /**
     * Continues at the position; after a pause by the end of the tier at `start`, since pills of that
     * time are not delivered.
     */
    async resume(request: OwnedRequest & { readonly start: StartPositions }) {
      const packed = await pack(request.start);
      return inTurn(db, request.accountId, (tx) => resume(tx, request, packed));
    },

    remove: (request: OwnedRequest) =>
      inTurn(db, request.accountId, async (tx) => {
        const before = await lockDestination(tx, request);
        if (before === undefined) return undefined;
        await tx.deleteFrom('destinations').where('id', '=', before.id).execute();
        await audit(tx, request, 'destination.removed', { name: before.name, type: before.type });
        return before;
      }),

    /** The credentials, for a test. @throws SealError */
    async secretsOf(accountId: string, id: string): Promise<object | undefined> {
      const row = await selectDestinations(db, accountId).where('id', '=', id).executeTakeFirst();
      return row === undefined ? undefined : openSecrets(seal, row);
    },
  };
}

type Packed = Awaited<ReturnType<typeof pack>>;

/** Packed before the transaction, which holds a lock. */
function pack({ epoch, snapshots }: StartPositions) {
  return Promise.all(
    [...snapshots].map(async ([partition, { offset, symbols }]) => ({
      epoch,
      partition,
      next_offset: offset,
      snapshot_offset: offset,
      snapshot: await packSymbols(symbols),
    })),
  );
}

async function create(
  tx: Transaction<Tables>,
  seal: Seal,
  wanted: NewDestination,
  positions: Packed,
) {
  const { accountId, type, name, settings, secrets, filter } = wanted;
  await lockAccount(tx, accountId);
  const { live, made } = await countDestinations(tx, accountId);
  if (live >= LIMITS.perAccountMax) return { kind: 'limit' } as const;
  if (made >= LIMITS.madePerHourMax) return { kind: 'too_many_made' } as const;
  const id = newId('dst');
  await tx
    .insertInto('destinations')
    .values({
      id,
      account_id: accountId,
      name,
      type: type.name,
      settings: JSON.stringify(settings),
      filter: JSON.stringify(filter),
      sealed: sealSecrets(seal, secrets, id),
      created_by: wanted.actor,
    })
    .execute();
  await startAt(tx, id, positions);
  await audit(tx, { ...wanted, destinationId: id }, 'destination.created', {
    ...{ name, type: type.name, settings, filter },
  });
  return { kind: 'ok', destination: (await readDestination(tx, accountId, id))! } as const;
}

async function countDestinations(tx: Transaction<Tables>, accountId: string) {
  const { count: live } = await tx
    .selectFrom('destinations')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  // Removed ones are counted by the audit log.
  const { count: made } = await tx
    .selectFrom('audit_log')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('account_id', '=', accountId)
    .where('action', '=', 'destination.created')
    .where('at', '>', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirstOrThrow();
  return { live: Number(live), made: Number(made) };
}

async function startAt(tx: Transaction<Tables>, id: string, positions: Packed): Promise<void> {
  await tx.deleteFrom('destination_positions').where('destination_id', '=', id).execute();
  for (const position of positions) {
    const row = { destination_id: id, ...position };
    await tx.insertInto('destination_positions').values(row).execute();
  }
}

async function changeDestination(
  tx: Transaction<Tables>,
  { seal, policy }: DestinationsDeps,
  change: DestinationChange,
) {
  const before = await lockDestination(tx, change);
  // A path names the type: another type's destination is not found there.
  if (before?.type !== change.type.name) return undefined;
  const settings = { ...before.settings, ...change.settings };
  const filter = { ...before.filter, ...change.filter };
  const faults = [
    ...filterFaults(filter),
    ...changeFaults(change, before.settings, settings),
    ...settingFaults(change.type, settings, policy),
  ];
  if (faults.length > 0) return { kind: 'invalid', faults } satisfies Invalid;
  const { secrets } = change;
  await tx
    .updateTable('destinations')
    .set({
      name: change.name ?? before.name,
      settings: JSON.stringify(settings),
      filter: JSON.stringify(filter),
      version: before.version + 1,
      updated_at: sql<Date>`now()`,
    })
    .where('id', '=', before.id)
    .execute();
  if (secrets !== undefined) {
    await tx
      .updateTable('destinations')
      .set({
        sealed: sealSecrets(seal, secrets, before.id),
        credential_version: before.credentialVersion + 1,
        credential_changed_at: sql<Date>`now()`,
      })
      .where('id', '=', before.id)
      .execute();
  }
  const after = (await readDestination(tx, change.accountId, before.id))!;
  await audit(tx, change, 'destination.changed', {
    before: auditOf(before),
    after: auditOf(after),
    credentials: secrets === undefined ? 'same' : 'new',
  });
  return { kind: 'ok', destination: after } as const;
}

/** Fixed settings, and receivers of credentials that are not sent again. */
function changeFaults(
  { type, secrets }: DestinationChange,
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Fault[] {
  const changed = (name: string) => !isDeepStrictEqual(before[name], after[name]);
  const fixed = type.fixed.filter(changed).map((name): Fault => {
    const detail = `\`${name}\` never changes. Create another destination.`;
    return { pointer: `#/settings/${name}`, code: 'malformed', detail };
  });
  if (secrets !== undefined || !type.receivers.some(changed)) return fixed;
  const detail = `Send \`secrets\` again with another ${type.receivers.join(' or ')}, which gets them.`;
  return [...fixed, { pointer: '#/secrets', code: 'missing_field', detail }];
}

async function pause(tx: Transaction<Tables>, request: OwnedRequest) {
  const before = await lockDestination(tx, request);
  if (before === undefined || before.pausedBy !== undefined) return before;
  await tx
    .updateTable('destinations')
    .set({ paused_by: 'owner', failing_since: null })
    .where('id', '=', before.id)
    .execute();
  await audit(tx, request, 'destination.paused', {});
  return readDestination(tx, request.accountId, before.id);
}

async function resume(tx: Transaction<Tables>, request: OwnedRequest, positions: Packed) {
  const before = await lockDestination(tx, request);
  if (before === undefined || before.pausedBy === undefined) return before;
  if (before.pausedBy === 'entitlement') await startAt(tx, before.id, positions);
  await tx
    .updateTable('destinations')
    .set({ paused_by: null })
    .where('id', '=', before.id)
    .execute();
  await audit(tx, request, 'destination.resumed', { paused_by: before.pausedBy });
  return readDestination(tx, request.accountId, before.id);
}

async function lockDestination(tx: Transaction<Tables>, request: OwnedRequest) {
  await lockAccount(tx, request.accountId);
  return readDestination(tx, request.accountId, request.destinationId);
}

function settingFaults(type: AnyDestinationType, settings: object, policy: UrlPolicy): Fault[] {
  return type
    .faults(settings, policy)
    .map(({ setting, ...fault }) => ({ pointer: `#/settings/${setting}`, ...fault }));
}

/** What an audit entry says; credentials are in none of its members. */
function auditOf({ name, settings, filter }: Destination) {
  return { name, settings, filter };
}

function audit(tx: Transaction<Tables>, request: OwnedRequest, action: string, detail: object) {
  return writeAudit(tx, { ...auditEntry(request, action, request.destinationId), detail });
}
