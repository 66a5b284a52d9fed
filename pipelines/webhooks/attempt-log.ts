import type { ClickHouse } from '../../lib/clickhouse.ts';
import type { Log } from '../../lib/log.ts';
import { createCounter } from '../../lib/metrics.ts';
import { type Repetition, repeat } from '../../lib/repeat.ts';
import { type AttemptRow, insertAttempts } from '../../lib/webhooks/attempts.ts';
import { LIMITS } from './limits.ts';

const INTERVAL_MS = 1_000;
const ROWS_MAX = 10_000;

const lostTotal = createCounter({
  name: 'pillole_webhook_attempt_lines_lost_total',
  help: 'Lines of the log of attempts that were not written, because ClickHouse was away too long.',
});

/** The log of attempts, written about once a second. It is told of, never decided by. */
export interface AttemptLog {
  add(row: AttemptRow): void;
  close(): Promise<void>;
}

export function openAttemptLog(clickhouse: ClickHouse, log: Log): AttemptLog {
  let rows: AttemptRow[] = [];
  const write = async () => {
    while (rows.length > 0) {
      const batch = rows.slice(0, ROWS_MAX);
      // An insert whose answer is lost may have been kept: then lines come twice, none is missing.
      await insertAttempts(clickhouse, batch);
      rows = rows.slice(batch.length);
    }
  };
  const writing: Repetition = repeat({
    ...{ name: 'log of attempts', everyMs: INTERVAL_MS, log },
    run: write,
  });
  return {
    add(row) {
      rows.push(row);
      if (rows.length <= LIMITS.attemptLinesMax) return;
      const lost = rows.length - LIMITS.attemptLinesMax;
      rows = rows.slice(lost);
      lostTotal.inc(lost);
    },
    async close() {
      await writing.close();
      await write().catch((error) => log.warn({ err: error }, 'the last attempts are not logged'));
    },
  };
}
