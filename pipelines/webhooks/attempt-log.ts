import type { ClickHouse } from '../../lib/clickhouse.ts';
import type { Log } from '../../lib/log.ts';
import { createCounter } from '../../lib/metrics.ts';
import { type Repetition, repeat } from '../../lib/repeat.ts';
import { type AttemptRow, insertAttempts } from '../../lib/webhooks/attempts.ts';
import { LIMITS } from './limits.ts';

const INTERVAL_MS = 1_000;
/** Of one insert. */
const ROWS_MAX = 10_000;
const BYTES_MAX = 4 * 1024 * 1024;

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
  const rows: AttemptRow[] = [];
  let bytes = 0;
  /** Rows at the front that are being inserted: not to be lost meanwhile. */
  let inserting = 0;

  const write = async () => {
    while (rows.length > 0) {
      inserting = countOfInsert(rows);
      const batch = rows.slice(0, inserting);
      try {
        // An insert whose answer is lost may have been kept: then lines come twice, none is missing.
        await insertAttempts(clickhouse, batch);
        for (const row of rows.splice(0, inserting)) bytes -= bytesOf(row);
      } finally {
        inserting = 0;
      }
    }
  };
  const writing: Repetition = repeat({
    ...{ name: 'log of attempts', everyMs: INTERVAL_MS, log },
    run: write,
  });
  return {
    add(row) {
      rows.push(row);
      bytes += bytesOf(row);
      while (rows.length > LIMITS.attemptLinesMax || bytes > LIMITS.attemptBytesMax) {
        if (rows.length <= inserting + 1) break;
        // A hundredth at a time: one by one each would move all others.
        const lost = rows.splice(inserting, Math.ceil((rows.length - inserting) / 100));
        for (const one of lost) bytes -= bytesOf(one);
        lostTotal.inc(lost.length);
      }
    },
    async close() {
      await writing.close();
      await write().catch((error) => log.warn({ err: error }, 'the last attempts are not logged'));
    },
  };
}

function countOfInsert(rows: readonly AttemptRow[]): number {
  let bytes = 0;
  for (const [at, row] of rows.entries()) {
    bytes += bytesOf(row);
    if (at > 0 && (at >= ROWS_MAX || bytes > BYTES_MAX)) return at;
  }
  return rows.length;
}

function bytesOf({ body, answer, detail }: AttemptRow): number {
  return 300 + body.length + answer.length + detail.length;
}
