import { type Selectable, sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import { type Requester, writeAudit } from './audit.ts';

export const NOTICE_SEVERITIES = ['info', 'warning', 'outage'] as const;
export type NoticeSeverity = (typeof NOTICE_SEVERITIES)[number];

export const NOTICE_LIMITS = {
  /** Notices in force at a time: each is in every answer of GET /api/status. */
  currentMax: 20,
  messageCharsMax: 500,
} as const;

/** A message of the operator to all customers. */
export type Notice = ReturnType<typeof noticeOf>;

/** @returns `limit` = 20 notices are in force */
export async function publishNotice(
  db: Database,
  wanted: Requester & {
    readonly message: string;
    readonly severity: NoticeSeverity;
    readonly until?: Date | undefined;
  },
) {
  const { message, severity, until, actor, address } = wanted;
  const length = [...message].length;
  if (message.trim() === '' || length > NOTICE_LIMITS.messageCharsMax || /\p{Cc}/u.test(message)) {
    const reason = `The text must be one line of 1 to ${NOTICE_LIMITS.messageCharsMax} characters.`;
    return { kind: 'invalid' as const, reason };
  }
  // The negation also refuses an invalid date.
  if (until !== undefined && !(until.getTime() > Date.now())) {
    return { kind: 'invalid' as const, reason: 'The end must be a time in the future.' };
  }
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtext('notices of ' || current_schema()))`.execute(
      tx,
    );
    const current = await listCurrentNotices(tx);
    if (current.length >= NOTICE_LIMITS.currentMax) return { kind: 'limit' as const };
    const row = await tx
      .insertInto('notices')
      .values({ id: newId('ntc'), severity, message, until: until ?? null })
      .returningAll()
      .executeTakeFirstOrThrow();
    const entry = { accountId: null, actor, address, action: 'notice.published', target: row.id };
    await writeAudit(tx, { ...entry, detail: { severity, message, until } });
    return { kind: 'ok' as const, notice: noticeOf(row) };
  });
}

/** Ends a notice at once. @returns false if no such notice is in force */
export async function withdrawNotice(
  db: Database,
  { id, actor, address }: Requester & { readonly id: string },
): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    const ended = await tx
      .updateTable('notices')
      .set({ until: sql<Date>`now()` })
      .where('id', '=', id)
      .where(CURRENT, '=', true)
      .executeTakeFirst();
    if (ended.numUpdatedRows === 0n) return false;
    const action = 'notice.withdrawn';
    await writeAudit(tx, { accountId: null, actor, address, action, target: id });
    return true;
  });
}

/** Notices in force, newest first, at most 20. */
export async function listCurrentNotices(db: Database): Promise<readonly Notice[]> {
  const rows = await db
    .selectFrom('notices')
    .selectAll()
    .where(CURRENT, '=', true)
    .orderBy('published_at', 'desc')
    .limit(NOTICE_LIMITS.currentMax)
    .execute();
  return rows.map(noticeOf);
}

const CURRENT = sql<boolean>`(until IS NULL OR until > now())`;

function noticeOf(row: Selectable<Tables['notices']>) {
  const { id, severity, message, published_at: publishedAt, until } = row;
  return { id, severity, message, publishedAt, until: until ?? undefined };
}
