import { sql, type Transaction } from 'kysely';
import { SCOPES, type Scope } from '../access/access.ts';
import { tierOf } from '../access/entitlement.ts';
import { hashKey } from '../access/key-format.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { lockAccount, readAccountAccess } from './account-row.ts';
import { type Requester, writeAudit } from './audit.ts';
import { canonicalNetworks, NETWORKS_MAX } from './key-networks.ts';
import {
  countLive,
  distinct,
  insertKey,
  type KeyRecord,
  LIVE,
  type NewKeyRow,
  networksOf,
  readKey,
  recordOf,
  selectKeys,
} from './key-row.ts';

export type { KeyRecord };

export const KEY_LIMITS = {
  /** Keys of an account that are neither revoked nor expired; also those in a rotation's overlap. */
  livePerAccountMax: 50,
  networksMax: NETWORKS_MAX,
  nameCharsMax: 100,
  /** Rows of a list: all live keys, then the newest of those that ended in the last days. */
  listMax: 200,
  listEndedDays: 30,
  overlapSMax: 7 * 86_400,
  overlapSDefault: 86_400,
} as const;

/** Settings of a new key, and who asks for it. */
export type NewKey = NewKeyRow & Requester;

/** A key of an account, and who asks to change it. */
export interface KeyRequest extends Requester {
  readonly accountId: string;
  readonly keyId: string;
}

export interface KeyUpdate extends KeyRequest {
  readonly name?: string | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  readonly allowCidrs?: readonly string[] | undefined;
}

export interface KeyRotation extends KeyRequest {
  /** How long the old key goes on, 0 to 7 days; 24 h unless said. */
  readonly overlapS?: number | undefined;
}

export interface KeyInvalid {
  readonly kind: 'invalid';
  readonly field: 'name' | 'scopes' | 'expires_at' | 'allow_cidrs' | 'overlap_s';
  /** One sentence for the caller; never repeats what was sent. */
  readonly reason: string;
}

/** `key` is the secret: shown once, stored nowhere. */
export type KeyCreated =
  | { readonly kind: 'ok'; readonly key: string; readonly record: KeyRecord }
  | { readonly kind: 'limit' }
  | { readonly kind: 'subscription_required' }
  | KeyInvalid;

export type KeyRotated =
  | {
      readonly kind: 'ok';
      readonly key: string;
      readonly record: KeyRecord;
      readonly old: KeyRecord;
    }
  /** With an overlap there would be 51 live keys. */
  | { readonly kind: 'limit' }
  /** It is revoked, expired, or was rotated already. */
  | { readonly kind: 'ended' }
  | KeyInvalid;

export type KeyUpdated = { readonly kind: 'ok'; readonly record: KeyRecord } | KeyInvalid;

/** Keys of accounts. An id that is another account's is as one that does not exist: undefined. */
export interface Keys {
  create(wanted: NewKey): Promise<KeyCreated>;
  /** Live ones, and those that ended in the last 30 days: live first, newest first, at most 200. */
  list(accountId: string): Promise<readonly KeyRecord[]>;
  get(accountId: string, keyId: string): Promise<KeyRecord | undefined>;
  update(change: KeyUpdate): Promise<KeyUpdated | undefined>;
  /** Makes a key with the same settings, also the same expiry; the old one ends after the overlap. */
  rotate(rotation: KeyRotation): Promise<KeyRotated | undefined>;
  /** Ends a key at once; again it changes nothing. */
  revoke(request: KeyRequest): Promise<KeyRecord | undefined>;
  /** Ends all keys of an account. @returns how many */
  revokeAll(request: Requester & { readonly accountId: string }): Promise<number>;
  /** The live key of an account that this text is. */
  recognise(accountId: string, key: string): Promise<KeyRecord | undefined>;
}

/** @param pepper as every process that checks keys has it */
export function createKeys({ db, pepper }: { db: Database; pepper: Buffer }): Keys {
  return {
    create: (wanted) => {
      const invalid = faultOf(wanted);
      if (invalid !== undefined) return Promise.resolve(invalid);
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, wanted.accountId);
        const account = await readAccountAccess(tx, wanted.accountId);
        if (account === undefined || tierOf(account, Date.now()) === undefined) {
          return { kind: 'subscription_required' };
        }
        if ((await countLive(tx, wanted.accountId)) >= KEY_LIMITS.livePerAccountMax) {
          return { kind: 'limit' };
        }
        const made = await insertKey(tx, pepper, wanted);
        await writeAudit(tx, {
          ...change(wanted, 'key.created', made.record.id),
          detail: settingsOf(made.record),
        });
        return { kind: 'ok', ...made };
      });
    },

    list: async (accountId) => {
      const rows = await selectKeys(db)
        .where('account_id', '=', accountId)
        .where(
          sql<boolean>`coalesce(revoked_at, expires_at, now()) > now() - make_interval(days => ${KEY_LIMITS.listEndedDays})`,
        )
        .orderBy(LIVE, 'desc')
        .orderBy('created_at', 'desc')
        .limit(KEY_LIMITS.listMax)
        .execute();
      return rows.map(recordOf);
    },

    get: (accountId, keyId) => readKey(db, accountId, keyId),

    update: (wanted) => {
      const invalid = faultOf(wanted);
      if (invalid !== undefined) return Promise.resolve(invalid);
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, wanted.accountId);
        const before = await readKey(tx, wanted.accountId, wanted.keyId);
        if (before === undefined) return undefined;
        const values = {
          name: wanted.name ?? before.name,
          scopes: distinct(wanted.scopes ?? before.scopes),
          allow_cidrs: networksOf(wanted.allowCidrs ?? before.allowCidrs),
        };
        await tx.updateTable('api_keys').set(values).where('id', '=', before.id).execute();
        const record = (await readKey(tx, wanted.accountId, wanted.keyId))!;
        await writeAudit(tx, {
          ...change(wanted, 'key.updated', record.id),
          detail: { before: settingsOf(before), after: settingsOf(record) },
        });
        return { kind: 'ok', record };
      });
    },

    rotate: (rotation) => {
      const overlapS = rotation.overlapS ?? KEY_LIMITS.overlapSDefault;
      if (!(overlapS >= 0 && overlapS <= KEY_LIMITS.overlapSMax)) {
        const reason = `0 to ${KEY_LIMITS.overlapSMax} seconds.`;
        return Promise.resolve({ kind: 'invalid', field: 'overlap_s', reason });
      }
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, rotation.accountId);
        const before = await readKey(tx, rotation.accountId, rotation.keyId);
        if (before === undefined) return undefined;
        if (!before.live || before.replacedBy !== undefined) return { kind: 'ended' };
        const live = await countLive(tx, rotation.accountId);
        // Without an overlap the new key takes the place of the old one.
        if (overlapS > 0 && live >= KEY_LIMITS.livePerAccountMax) return { kind: 'limit' };
        const made = await insertKey(tx, pepper, { ...before, ...rotation });
        await tx
          .updateTable('api_keys')
          .set({
            replaced_by: made.record.id,
            expires_at: sql<Date>`least(expires_at, now() + make_interval(secs => ${overlapS}))`,
          })
          .where('id', '=', before.id)
          .execute();
        await writeAudit(tx, {
          ...change(rotation, 'key.rotated', before.id),
          detail: { replaced_by: made.record.id, overlap_s: overlapS },
        });
        const old = (await readKey(tx, rotation.accountId, before.id))!;
        return { kind: 'ok', ...made, old };
      });
    },

    revoke: (request) =>
      db.transaction().execute(async (tx) => {
        await lockAccount(tx, request.accountId);
        const ended = await tx
          .updateTable('api_keys')
          .set({ revoked_at: sql<Date>`now()` })
          .where('id', '=', request.keyId)
          .where('account_id', '=', request.accountId)
          .where('revoked_at', 'is', null)
          .executeTakeFirst();
        if (ended.numUpdatedRows > 0n) {
          await writeAudit(tx, change(request, 'key.revoked', request.keyId));
        }
        return readKey(tx, request.accountId, request.keyId);
      }),

    revokeAll: (request) => db.transaction().execute((tx) => revokeAllKeys(tx, request)),

    recognise: async (accountId, key) => {
      const row = await selectKeys(db)
        .where('hash', '=', hashKey(key, pepper))
        .where('account_id', '=', accountId)
        .where(LIVE, '=', true)
        .executeTakeFirst();
      return row === undefined ? undefined : recordOf(row);
    },
  };
}

/** Ends all keys of an account, inside a transaction; needs no pepper. @returns how many */
export async function revokeAllKeys(
  tx: Transaction<Tables>,
  request: Requester & { readonly accountId: string },
): Promise<number> {
  await lockAccount(tx, request.accountId);
  const ended = await tx
    .updateTable('api_keys')
    .set({ revoked_at: sql<Date>`now()` })
    .where('account_id', '=', request.accountId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  const keys = Number(ended.numUpdatedRows);
  if (keys > 0) await writeAudit(tx, { ...change(request, 'keys.revoked'), detail: { keys } });
  return keys;
}

function faultOf(wanted: Omit<KeyUpdate, 'keyId'> & { expiresAt?: Date | undefined }) {
  const fault = (field: KeyInvalid['field'], reason: string): KeyInvalid => {
    return { kind: 'invalid', field, reason };
  };
  const { name, scopes, expiresAt } = wanted;
  if (name !== undefined && !isName(name)) {
    return fault('name', `1 to ${KEY_LIMITS.nameCharsMax} printable characters.`);
  }
  if (scopes !== undefined && (scopes.length === 0 || scopes.some((s) => !SCOPES.includes(s)))) {
    return fault('scopes', `at least one of ${SCOPES.join(', ')}.`);
  }
  // Written so that an invalid date is refused too.
  if (expiresAt !== undefined && !(expiresAt.getTime() > Date.now())) {
    return fault('expires_at', 'a time in the future.');
  }
  const networks = canonicalNetworks(wanted.allowCidrs ?? []);
  return networks.ok ? undefined : fault('allow_cidrs', networks.reason);
}

function isName(name: string): boolean {
  const length = [...name].length;
  return (
    length >= 1 && length <= KEY_LIMITS.nameCharsMax && !/[\p{C}]/u.test(name) && /\S/.test(name)
  );
}

function change(request: Requester & { accountId: string }, action: string, target?: string) {
  const { accountId, actor, address } = request;
  return { accountId, actor, address, action, target };
}

function settingsOf({ name, scopes, allowCidrs, expiresAt, hint }: KeyRecord) {
  return { hint, name, scopes, allow_cidrs: allowCidrs, expires_at: expiresAt };
}
