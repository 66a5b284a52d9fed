import type { Transaction } from 'kysely';
import type { Tables } from '../../lib/postgres/tables.ts';
import { lockAccount } from '../accounts/account-row.ts';
import { type AccountRequest, auditEntry, writeAudit } from '../accounts/audit.ts';
import { readKey } from '../accounts/key-row.ts';
import { selectSchemes } from './scheme-record.ts';

/** A change that the state of the scheme does not allow. */
export interface Conflict {
  readonly kind: 'conflict';
  readonly reason: string;
}

/** Accepts or refuses the keys of the account; keys stay as they are. */
export async function refuseKeys(
  tx: Transaction<Tables>,
  request: AccountRequest & { readonly refused: boolean },
): Promise<{ readonly kind: 'ok' } | Conflict> {
  const { accountId, refused } = request;
  await lockAccount(tx, accountId);
  if (refused && (await schemesOn(tx, accountId)) === 0) {
    return conflict('No scheme of the account is on: programs would have no way in.');
  }
  await tx
    .updateTable('accounts')
    .set({ keys_refused: refused })
    .where('id', '=', accountId)
    .execute();
  await writeAudit(tx, auditEntry(request, refused ? 'keys.refused' : 'keys.accepted'));
  return { kind: 'ok' };
}

/** Accepts or refuses one key itself. @returns undefined: the account has no such live key */
export async function refuseSecret(
  tx: Transaction<Tables>,
  request: AccountRequest & { readonly keyId: string; readonly refused: boolean },
): Promise<{ readonly kind: 'ok' } | Conflict | undefined> {
  const { accountId, keyId, refused } = request;
  await lockAccount(tx, accountId);
  const key = await readKey(tx, accountId, keyId);
  if (key === undefined || !key.live) return undefined;
  const ofKey = await selectSchemes(tx, accountId)
    .where('key_id', '=', keyId)
    .where('is_on', '=', true)
    .execute();
  if (refused && ofKey.every((row) => row.is_expired)) {
    return conflict('No scheme that stands for this key is on.');
  }
  await tx
    .updateTable('api_keys')
    .set({ secret_refused: refused })
    .where('id', '=', keyId)
    .execute();
  await writeAudit(tx, auditEntry(request, refused ? 'key.refused' : 'key.accepted', keyId));
  return { kind: 'ok' };
}

/** Whether keys are refused, and no other scheme of the account itself is on. */
export async function isLastWayIn(tx: Transaction<Tables>, accountId: string, schemeId: string) {
  const account = await tx
    .selectFrom('accounts')
    .select('keys_refused')
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow();
  return account.keys_refused && (await schemesOn(tx, accountId, schemeId)) === 0;
}

/** Schemes of the account itself that are accepted now. @param except is not counted */
async function schemesOn(tx: Transaction<Tables>, accountId: string, except = ''): Promise<number> {
  const rows = await selectSchemes(tx, accountId)
    .where('is_on', '=', true)
    .where('key_id', 'is', null)
    .where('id', '<>', except)
    .execute();
  return rows.filter((row) => !row.is_expired).length;
}

export function conflict(reason: string): Conflict {
  return { kind: 'conflict', reason };
}
