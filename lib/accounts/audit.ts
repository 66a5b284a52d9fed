import type { Transaction } from 'kysely';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';

/** Who asks for a change, as the audit log names it. */
export interface Requester {
  /** `user:usr_…`, `operator:<login>`, `billing:<provider>` or `system`. */
  readonly actor: string;
  /** Network address it was asked from; undefined = from this machine. */
  readonly address?: string | undefined;
}

export interface AuditChange extends Requester {
  /** null = the platform. */
  readonly accountId: string | null;
  /** noun.verb, e.g. `key.revoked`. */
  readonly action: string;
  /** Id of what it was done to. */
  readonly target?: string | undefined;
  /** What changed; never a secret. */
  readonly detail?: object | undefined;
}

/** Ids are whole numbers as text: order of writing. */
export interface AuditEntry {
  readonly id: string;
  readonly at: Date;
  readonly accountId: string | null;
  readonly actor: string;
  readonly action: string;
  readonly target: string | null;
  readonly address: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Entries that one call reads. */
export const AUDIT_PAGE_MAX = 200;

/** Writes one entry; inside the transaction of the change it stands or falls with it. */
export async function writeAudit(
  db: Database | Transaction<Tables>,
  change: AuditChange,
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
 * Reads entries, newest first. @param accountId null = those of the platform
 * @param page `limit` 1 to 200; `before` is the id of the last entry of the page before
 */
export async function readAudit(
  db: Database | Transaction<Tables>,
  accountId: string | null,
  page: { readonly limit: number; readonly before?: string | undefined },
): Promise<readonly AuditEntry[]> {
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
