import { sql } from 'kysely';
import { newId } from '../access/id.ts';
import type { Database } from '../postgres/database.ts';
import { type Requester, writeAudit } from './audit.ts';

export const NOTICE_SEVERITIES = ['info', 'warning', 'outage'] as const;
export type NoticeSeverity = (typeof NOTICE_SEVERITIES)[number];

export const NOTICE_LIMITS = {
  /** Notices in force at a time: each stands in every answer of GET /api/status. */
  currentMax: 20,
  messageCharsMax: 500,
} as const;

/** What the operator tells all customers. */
export interface Notice {
  readonly id: string;
  readonly severity: NoticeSeverity;
  readonly message: string;
  readonly publishedAt: Date;
  /** undefined = until it is withdrawn. */
  readonly until: Date | undefined;
}

export type NoticePublished =
  | { readonly kind: 'ok'; readonly notice: Notice }
  /** 20 are in force. */
  | { readonly kind: 'limit' }
  | { readonly kind: 'invalid'; readonly reason: string };

export async function publishNotice(
  db: Database,
  wanted: Requester & {
    readonly message: string;
    readonly severity: NoticeSeverity;
    readonly until?: Date | undefined;
  },
): Promise<NoticePublished> {
  const { message, severity, until } = wanted;
  const length = [...message].length;
  if (message.trim() === '' || length > NOTICE_LIMITS.messageCharsMax || /\p{Cc}/u.test(message)) {
    const reason = `The text must be one line of 1 to ${NOTICE_LIMITS.messageCharsMax} characters.`;
    return { kind: 'invalid', reason };
  }
  // Written so that an invalid date is refused too.
  if (until !== undefined && !(until.getTime() > Date.now())) {
    return { kind: 'invalid', reason: 'The end must be a time in the future.' };
  }
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtext('notices of ' || current_schema()))`.execute(
      tx,
    );
    const current = await listCurrentNotices(tx);
    if (current.length >= NOTICE_LIMITS.currentMax) return { kind: 'limit' };
    const row = await tx
      .insertInto('notices')
      .values({ id: newId('ntc'), severity, message, until: until ?? null })
      .returningAll()
      .executeTakeFirstOrThrow();
    const { actor, address } = wanted;
    await writeAudit(tx, {
      accountId: null,
      actor,
      address,
      action: 'notice.published',
      target: row.id,
      detail: { severity, message, until },
    });
    return { kind: 'ok', notice: noticeOf(row) };
  });
}

/** Ends a notice at once. @returns false when none of this id is in force */
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
    await writeAudit(tx, {
      accountId: null,
      actor,
      address,
      action: 'notice.withdrawn',
      target: id,
    });
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

function noticeOf(row: {
  readonly id: string;
  readonly severity: NoticeSeverity;
  readonly message: string;
  readonly published_at: Date;
  readonly until: Date | null;
}): Notice {
  const { id, severity, message, published_at: publishedAt, until } = row;
  return { id, severity, message, publishedAt, until: until ?? undefined };
}
