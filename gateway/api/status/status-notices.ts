import { listCurrentNotices } from '../../../domain/accounts/operator-notices.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { timeText } from '../../http/answer-body.ts';

/** The operator's notices as `GET /api/status` shows them; times are RFC 3339. */
export async function readStatusNotices(db: Database) {
  const notices = await listCurrentNotices(db);
  return notices.map(({ id, severity, message, publishedAt, until }) => ({
    id,
    severity,
    message,
    published_at: timeText(publishedAt),
    until: until === null || until === undefined ? null : timeText(until),
  }));
}

export type StatusNotices = Awaited<ReturnType<typeof readStatusNotices>>;
