import type { Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';

/** The requester of a change, as recorded in the audit log. */
export interface Requester {
  /** `user:usr_…`, `key:…`, `scheme:aut_…`, `operator:<login>`, `billing:<provider>` or `system`. */
  readonly actor: string;
  /** Network address of the request; undefined = this machine. */
  readonly address?: string | undefined;
}

/** A request of a requester for an account. */
export interface AccountRequest extends Requester {
  readonly accountId: string;
}

/** The entry of a change that a request makes, without its detail. */
export function auditEntry(
  { accountId, actor, address }: AccountRequest,
  action: string,
  target?: string,
) {
  return { accountId, actor, address, action, target };
}

/** Entries per call. */
export const AUDIT_PAGE_MAX = 200;

/** Writes an entry; in the transaction of the change, both commit or neither does. */
export async function writeAudit(
  db: Database | Transaction<Tables>,
  change: Requester & {
    /** null = the platform. */
    readonly accountId: string | null;
    /** noun.verb, e.g. `key.revoked`. */
    readonly action: string;
    /** Id of the object that was changed. */
    readonly target?: string | undefined;
    /** The change; never a secret. */
    readonly detail?: object | undefined;
  },
): Promise<void> {
  await db
    .insertInto('audit_log')
    .values({
      account_id: change.accountId,
      actor: change.actor,
      action: change.action,
      target: change.target ?? null,
      address: change.address ?? null,
      detail: JSON.stringify(change.detail ?? {}),
    })
    .execute();
}

/**
 * Reads entries, newest first; ids are integers as text, in the order of writing.
 * @param accountId null = entries of the platform
 * @param page `limit` is 1 to 200; `before` is the id of the last entry on the previous page
 */
export async function readAudit(
  db: Database | Transaction<Tables>,
  accountId: string | null,
  page: { readonly limit: number; readonly before?: string | undefined },
) {
  let query = db
    .selectFrom('audit_log')
    .selectAll()
    .where('account_id', accountId === null ? 'is' : '=', accountId)
    .orderBy('id', 'desc')
    .limit(Math.max(1, Math.min(page.limit, AUDIT_PAGE_MAX)));
  if (page.before !== undefined) query = query.where('id', '<', page.before);
  const rows = await query.execute();
  return rows.map(({ account_id: owner, ...row }) => ({ ...row, accountId: owner }));
}
