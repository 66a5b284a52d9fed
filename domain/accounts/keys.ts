import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { tierOf } from '../access/entitlement.ts';
import { hashesOf } from '../access/key-format.ts';
import type { Pepper } from '../access/pepper.ts';
import { SCOPES } from '../access/scopes.ts';
import { raiseSecurityEvent } from './account-alerts.ts';
import { lockAccount, readAccountAccess } from './account-row.ts';
import { type AccountRequest, auditEntry, type Requester, writeAudit } from './audit.ts';
import {
  countLive,
  distinct,
  IS_LIVE_KEY,
  insertKey,
  type KeyRecord,
  type NewKeyRow,
  readKey,
  recordOf,
  selectKeys,
} from './key-row.ts';
import { canonicalNetworks, NETWORKS_MAX, networksOf } from './networks.ts';

export type { KeyRecord };

export const KEY_LIMITS = {
  /** Keys of an account that are neither revoked nor expired, including those in an overlap. */
  livePerAccountMax: 50,
  /** Keys made within an hour, rotations included, also if revoked since: each one is mailed. */
  madePerHourMax: 100,
  networksMax: NETWORKS_MAX,
  nameCharsMax: 100,
  /** Rows of a list: all live keys, then the newest keys that ended in `listEndedDays`. */
  listMax: 200,
  listEndedDays: 30,
  overlapSMax: 7 * 86_400,
  overlapSDefault: 86_400,
} as const;

/** A key of an account, and the requester of a change. */
type KeyRequest = AccountRequest & { readonly keyId: string };
/** Settings of a new key, and the requester. */
type NewKey = Omit<NewKeyRow, 'deskId'> & Requester & { readonly desk?: string | undefined };
type KeySettings = {
  readonly [K in 'name' | 'scopes' | 'allowCidrs']?: NewKeyRow[K] | undefined;
};

export interface KeyInvalid {
  readonly kind: 'invalid';
  readonly field: 'name' | 'scopes' | 'expires_at' | 'allow_cidrs' | 'overlap_s' | 'desk';
  /** One sentence for the caller, which never repeats the input. */
  readonly reason: string;
}

interface TooManyMade {
  readonly kind: 'too_many_made';
  readonly retryAfterS: number;
}

/** `key` is the secret: shown once, never stored. */
export type KeyCreated =
  | { readonly kind: 'ok'; readonly key: string; readonly record: KeyRecord }
  | { readonly kind: 'limit' }
  | TooManyMade
  | { readonly kind: 'subscription_required' }
  | KeyInvalid;

export type Keys = ReturnType<typeof createKeys>;

/**
 * Keys of accounts. The id of another account's key counts as unknown: undefined.
 * @param pepper the same as in every process that checks keys
 */
export function createKeys({ db, pepper }: { db: Database; pepper: Pepper }) {
  return {
    create: async (wanted: NewKey): Promise<KeyCreated> =>
      faultOf(wanted) ?? inTurn(db, wanted.accountId, (tx) => createKey(tx, pepper, wanted)),

    /** Live keys, and those that ended in the last 30 days: live first, newest first, at most 200. */
    async list(accountId: string): Promise<readonly KeyRecord[]> {
      const rows = await selectKeys(db)
        .where('account_id', '=', accountId)
        .where(
          sql<boolean>`coalesce(revoked_at, expires_at, now()) > now() - make_interval(days => ${KEY_LIMITS.listEndedDays})`,
        )
        .orderBy(IS_LIVE_KEY, 'desc')
        .orderBy('created_at', 'desc')
        .limit(KEY_LIMITS.listMax)
        .execute();
      return rows.map(recordOf);
    },

    get: (accountId: string, keyId: string) => readKey(db, accountId, keyId),

    update: async (change: KeyRequest & KeySettings) =>
      faultOf(change) ?? inTurn(db, change.accountId, (tx) => updateKey(tx, change)),

    /**
     * Makes a key with the same settings and expiry; the old one ends after the overlap, 0 to 7 days;
     * default 24 h.
     */
    async rotate(rotation: KeyRequest & { readonly overlapS?: number | undefined }) {
      const { overlapS = KEY_LIMITS.overlapSDefault } = rotation;
      if (!(overlapS >= 0 && overlapS <= KEY_LIMITS.overlapSMax)) {
        return invalid('overlap_s', `must be 0 to ${KEY_LIMITS.overlapSMax} seconds.`);
      }
      return inTurn(db, rotation.accountId, (tx) =>
        rotateKey(tx, pepper, { ...rotation, overlapS }),
      );
    },

    /** Ends a key at once; idempotent. */
    revoke: (request: KeyRequest) => inTurn(db, request.accountId, (tx) => revokeKey(tx, request)),

    /** Ends all keys of an account. @returns how many */
    revokeAll: (request: AccountRequest) =>
      inTurn(db, request.accountId, (tx) => revokeAllKeys(tx, request)),

    /** Finds the live key of an account by its text. */
    async recognise(accountId: string, key: string): Promise<KeyRecord | undefined> {
      const row = await selectKeys(db)
        .where('hash', 'in', hashesOf(key, pepper))
        .where('account_id', '=', accountId)
        .where(IS_LIVE_KEY, '=', true)
        .executeTakeFirst();
      return row === undefined ? undefined : recordOf(row);
    },
  };
}

async function createKey(
  tx: Transaction<Tables>,
  pepper: Pepper,
  wanted: NewKey,
): Promise<KeyCreated> {
  await lockAccount(tx, wanted.accountId);
  const account = await readAccountAccess(tx, wanted.accountId);
  if (account === undefined || tierOf(account, Date.now()) === undefined) {
    return { kind: 'subscription_required' };
  }
  if ((await countLive(tx, wanted.accountId)) >= KEY_LIMITS.livePerAccountMax) {
    return { kind: 'limit' };
  }
  const tooMany = await tooManyMade(tx, wanted.accountId);
  if (tooMany !== undefined) return tooMany;
  // Under the lock of the account, so that no key is made in a desk that is being removed.
  const desk = wanted.desk === undefined ? undefined : await findDesk(tx, wanted, wanted.desk);
  if (wanted.desk !== undefined && desk === undefined) {
    return invalid('desk', 'must be the name of a desk of the account.');
  }
  const made = await insertKey(tx, pepper, { ...wanted, deskId: desk?.id });
  await raiseKeyCreated(tx, wanted, made.record);
  await writeAudit(tx, {
    ...auditEntry(wanted, 'key.created', made.record.id),
    detail: settingsOf(made.record),
  });
  return { kind: 'ok', ...made };
}

function findDesk(tx: Transaction<Tables>, { accountId }: NewKey, name: string) {
  return tx
    .selectFrom('desks')
    .select('id')
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
}

/** @returns the refusal if the account, which is locked, has made too many keys lately */
async function tooManyMade(
  tx: Transaction<Tables>,
  accountId: string,
): Promise<TooManyMade | undefined> {
  const { made, left_s: leftS } = await tx
    .selectFrom('api_keys')
    .select(sql<string>`count(*)`.as('made'))
    .select(
      sql<number>`ceil(extract(epoch FROM min(created_at) + interval '1 hour' - now()))::int`.as(
        'left_s',
      ),
    )
    .where('account_id', '=', accountId)
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirstOrThrow();
  if (Number(made) < KEY_LIMITS.madePerHourMax) return undefined;
  return { kind: 'too_many_made', retryAfterS: Math.max(1, leftS) };
}

function raiseKeyCreated(
  tx: Transaction<Tables>,
  { accountId, actor, address }: AccountRequest,
  { id, hint, name, scopes }: KeyRecord,
): Promise<void> {
  return raiseSecurityEvent(tx, accountId, {
    type: 'key.created',
    occurrence: id,
    data: { key: id, hint, name, scopes, by: actor, address: address ?? 'the operator' },
  });
}

async function updateKey(tx: Transaction<Tables>, change: KeyRequest & KeySettings) {
  const { accountId, keyId } = change;
  await lockAccount(tx, accountId);
  const before = await readKey(tx, accountId, keyId);
  if (before === undefined) return undefined;
  const values = {
    name: change.name ?? before.name,
    scopes: distinct(change.scopes ?? before.scopes),
    allow_cidrs: networksOf(change.allowCidrs ?? before.allowCidrs),
  };
  await tx.updateTable('api_keys').set(values).where('id', '=', before.id).execute();
  const record = (await readKey(tx, accountId, keyId))!;
  await writeAudit(tx, {
    ...auditEntry(change, 'key.updated', record.id),
    detail: { before: settingsOf(before), after: settingsOf(record) },
  });
  return { kind: 'ok' as const, record };
}

async function rotateKey(
  tx: Transaction<Tables>,
  pepper: Pepper,
  rotation: KeyRequest & { readonly overlapS: number },
) {
  const { accountId, keyId, overlapS } = rotation;
  await lockAccount(tx, accountId);
  const before = await readKey(tx, accountId, keyId);
  if (before === undefined) return undefined;
  // Revoked, expired or already rotated.
  if (!before.live || before.replacedBy !== undefined) return { kind: 'ended' as const };
  const live = await countLive(tx, accountId);
  // Without an overlap the new key takes the place of the old one.
  if (overlapS > 0 && live >= KEY_LIMITS.livePerAccountMax) return { kind: 'limit' as const };
  const tooMany = await tooManyMade(tx, accountId);
  if (tooMany !== undefined) return tooMany;
  const made = await insertKey(tx, pepper, { ...before, ...rotation });
  await raiseKeyCreated(tx, rotation, made.record);
  await tx
    .updateTable('api_keys')
    .set({
      replaced_by: made.record.id,
      expires_at: sql<Date>`least(expires_at, now() + make_interval(secs => ${overlapS}))`,
    })
    .where('id', '=', before.id)
    .execute();
  await writeAudit(tx, {
    ...auditEntry(rotation, 'key.rotated', before.id),
    detail: { replaced_by: made.record.id, overlap_s: overlapS },
  });
  const old = (await readKey(tx, accountId, before.id))!;
  return { kind: 'ok' as const, ...made, old };
}

async function revokeKey(
  tx: Transaction<Tables>,
  request: KeyRequest,
): Promise<KeyRecord | undefined> {
  const { accountId, keyId } = request;
  await lockAccount(tx, accountId);
  const ended = await tx
    .updateTable('api_keys')
    .set({ revoked_at: sql<Date>`now()` })
    .where('id', '=', keyId)
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  if (ended.numUpdatedRows > 0n) await writeAudit(tx, auditEntry(request, 'key.revoked', keyId));
  return readKey(tx, accountId, keyId);
}

/** Ends all keys of an account inside a transaction; needs no pepper. @returns how many */
export async function revokeAllKeys(
  tx: Transaction<Tables>,
  request: AccountRequest,
): Promise<number> {
  await lockAccount(tx, request.accountId);
  const ended = await tx
    .updateTable('api_keys')
    .set({ revoked_at: sql<Date>`now()` })
    .where('account_id', '=', request.accountId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  const keys = Number(ended.numUpdatedRows);
  if (keys > 0) await writeAudit(tx, { ...auditEntry(request, 'keys.revoked'), detail: { keys } });
  return keys;
}

function invalid(field: KeyInvalid['field'], reason: string): KeyInvalid {
  return { kind: 'invalid', field, reason };
}

function faultOf({
  name,
  scopes,
  expiresAt,
  allowCidrs = [],
}: KeySettings & Pick<NewKeyRow, 'expiresAt'>): KeyInvalid | undefined {
  if (name !== undefined && !isName(name)) {
    return invalid('name', `must have 1 to ${KEY_LIMITS.nameCharsMax} printable characters.`);
  }
  if (scopes !== undefined && (scopes.length === 0 || scopes.some((s) => !SCOPES.includes(s)))) {
    return invalid('scopes', `must contain at least one of ${SCOPES.join(', ')}.`);
  }
  // The negation also refuses an invalid date.
  if (expiresAt !== undefined && !(expiresAt.getTime() > Date.now())) {
    return invalid('expires_at', 'must be a time in the future.');
  }
  const networks = canonicalNetworks(allowCidrs);
  return networks.ok ? undefined : invalid('allow_cidrs', networks.reason);
}

function isName(name: string): boolean {
  const length = [...name].length;
  return (
    length >= 1 && length <= KEY_LIMITS.nameCharsMax && !/[\p{C}]/u.test(name) && /\S/.test(name)
  );
}

function settingsOf({ name, scopes, allowCidrs, expiresAt, hint, desk }: KeyRecord) {
  return { hint, name, scopes, allow_cidrs: allowCidrs, expires_at: expiresAt, desk };
}
