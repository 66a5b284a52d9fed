import { listCurrentNotices, type Notice } from '../../lib/accounts/notices.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Life } from '../../lib/run.ts';
import { NOTICES_REFRESH_MS } from './limits.ts';

/** A notice as `GET /api/status` tells it; times are RFC 3339. */
export interface PublicNotice {
  readonly id: string;
  readonly severity: Notice['severity'];
  readonly message: string;
  readonly published_at: string;
  readonly until: string | null;
}

/** Reads the operator's notices now and then; while PostgreSQL is away the last ones stay. */
export function watchNotices(db: Database, life: Life): () => readonly PublicNotice[] {
  let notices: readonly PublicNotice[] = [];
  let isReading = false;
  const read = async () => {
    if (isReading) return;
    isReading = true;
    try {
      notices = (await listCurrentNotices(db)).map(publicNotice);
    } catch (error) {
      life.log.debug({ err: error }, 'the notices are not known');
    }
    isReading = false;
  };
  const timer = setInterval(() => void read(), NOTICES_REFRESH_MS);
  life.onStop('notices', () => clearInterval(timer));
  void read();
  return () => notices;
}

function publicNotice({ id, severity, message, publishedAt, until }: Notice): PublicNotice {
  return {
    id,
    severity,
    message,
    published_at: publishedAt.toISOString(),
    until: until?.toISOString() ?? null,
  };
}
