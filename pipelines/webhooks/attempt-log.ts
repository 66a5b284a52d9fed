import { setTimeout as sleep } from 'node:timers/promises';
import { type AttemptRow, insertAttempts } from '../../domain/webhooks/deliveries/attempt-rows.ts';
import { GroupCommit } from '../../lib/batch/group-commit.ts';
import type { ClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import type { Log } from '../../lib/log/log.ts';
import { createCounter } from '../../lib/metrics/metrics.ts';
import { LIMITS } from './limits.ts';

const INTERVAL_MS = 1_000;
/** Bounds of one insert. */
const ROWS_MAX = 10_000;
const BYTES_MAX = 4 * 1024 * 1024;

const lostTotal = createCounter({
  name: 'pillole_webhook_attempt_lines_lost_total',
  help: 'Attempt-log lines dropped because ClickHouse was away too long.',
});

export type AttemptLog = ReturnType<typeof openAttemptLog>;

/** The log of attempts, written about once a second. No decision depends on it. */
export function openAttemptLog(clickhouse: ClickHouse, log: Log) {
  const closing = new AbortController();

  const commit = async (rows: readonly AttemptRow[]) => {
    for (;;) {
      const isLast = closing.signal.aborted;
      try {
        // An insert whose answer is lost may have been applied: a line may appear twice, but no
        // line is missing.
        await insertAttempts(clickhouse, rows);
        return [];
      } catch (error) {
        if (isLast) {
          log.warn({ err: error, rows: group.heldItems }, 'the last attempts are not logged');
          group.drop(() => true);
          return [];
        }
        log.warn({ err: error, rows: rows.length }, 'attempts cannot be logged; waiting');
        await sleep(INTERVAL_MS, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  };
  const group = new GroupCommit<AttemptRow, never>({
    commit,
    lingerMs: INTERVAL_MS,
    itemsMax: ROWS_MAX,
    sizeMax: BYTES_MAX,
    sizeOf: bytesOf,
  });
  const isOver = () =>
    group.heldItems > LIMITS.attemptLinesMax || group.heldSize > LIMITS.attemptBytesMax;

  return {
    add(row: AttemptRow): void {
      group.push(row);
      while (isOver() && group.waitingItems > 1) {
        // A hundredth at a time: dropping one by one would move all others each time.
        let left = Math.ceil(group.waitingItems / 100);
        const lost = group.drop(() => left-- > 0);
        lostTotal.inc(lost.length);
      }
    },
    close(): Promise<void> {
      closing.abort();
      return group.close();
    },
  };
}

function bytesOf({ body, answer, detail }: AttemptRow): number {
  return 300 + body.length + answer.length + detail.length;
}
