import { once } from 'node:events';
import { retryForever } from '../../lib/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { createCounter, createGauge, createHistogram } from '../../lib/metrics.ts';
import type { BufferedRow } from './rows.ts';
import type { PillStore, Progress } from './store.ts';

export interface SinkLimits {
  /** A row waits at most this for its insert to begin. */
  readonly flushIntervalMs: number;
  /** So many rows are inserted at once without waiting. */
  readonly flushRows: number;
  /** Rows that wait behind the insert under way; at the bound `add` waits, and the consumer. */
  readonly rowsMax: number;
}

/** One insert a second or 10,000 rows: every insert is a part that must be merged. */
const SINK_LIMITS: SinkLimits = {
  flushIntervalMs: 1_000,
  flushRows: 10_000,
  rowsMax: 50_000,
};

export interface Sink {
  /**
   * Takes rows of one partition, offsets ascending; waits when the buffer is full.
   * @param progress how far the partition is once they are in: told after them, without them too
   */
  add(rows: readonly BufferedRow[], signal: AbortSignal, progress?: Progress): Promise<void>;
  /** Forgets rows of a partition that went to another member. */
  drop(partition: number): void;
  /** Whether the last insert succeeded. */
  isHealthy(): boolean;
  /** Writes what is held, at most until `deadlineMs`. */
  close(deadlineMs: number): Promise<void>;
}

const rowsTotal = createCounter({
  name: 'pillole_analytics_rows_total',
  help: 'Rows inserted into ClickHouse.',
});
const insertSeconds = createHistogram({
  name: 'pillole_analytics_insert_seconds',
  help: 'Time of one insert.',
  buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
});
const bufferedRows = createGauge({
  name: 'pillole_analytics_buffered_rows',
  help: 'Rows that wait for their insert.',
});

/**
 * Buffers rows and inserts them, one insert at a time. An insert whose answer is lost is of unknown
 * outcome: before rows are sent again the table is asked for its position, and what it has is left
 * out; what slips through all the same (a late effect of the lost one) the table merges away.
 */
export function createSink(options: {
  readonly store: PillStore;
  readonly log: Log;
  readonly limits?: SinkLimits;
  /** Told the highest offset inserted of each partition. */
  onInserted(offsets: ReadonlyMap<number, number>): void;
  onFatal(error: Error): void;
}): Sink {
  const { store, log } = options;
  const limits = options.limits ?? SINK_LIMITS;
  const closing = new AbortController();
  const dropped = new Set<number>();
  let buffer: BufferedRow[] = [];
  let untold = new Map<number, Progress>();
  let timer: NodeJS.Timeout | undefined;
  let inserting: Promise<void> | undefined;
  let healthy = true;
  let closed = false;
  const room: (() => void)[] = [];

  const insertOnce = async (rows: BufferedRow[], isRetry: boolean): Promise<void> => {
    let wanted = rows;
    if (isRetry) {
      const positions = await store.positions();
      const isThere = ({ partition, offset }: BufferedRow) =>
        offset <= (positions.get(partition)?.offset ?? -1);
      wanted = rows.filter((row) => !isThere(row));
    }
    const kept = wanted.filter(({ partition }) => !dropped.has(partition));
    if (kept.length === 0) return;
    const end = insertSeconds.startTimer();
    await store.insert(kept);
    end();
    rowsTotal.inc(kept.length);
  };

  /** After the rows, never before: what is told is there. */
  const tell = async (progress: Iterable<Progress>): Promise<void> => {
    const kept = [...progress].filter(({ partition }) => !dropped.has(partition));
    if (kept.length > 0) await store.tell(kept);
  };

  const flush = async () => {
    while (buffer.length > 0 || untold.size > 0) {
      const rows = buffer;
      const progress = untold;
      buffer = [];
      untold = new Map();
      dropped.clear();
      let attempts = 0;
      const write = async () => {
        await insertOnce(rows, attempts++ > 0);
        await tell(progress.values());
      };
      await retryForever(write, {
        firstMs: 200,
        maxMs: 3_000,
        signal: closing.signal,
        onError(error) {
          healthy = false;
          log.warn({ err: error, rows: rows.length, attempts }, 'ClickHouse did not take the rows');
        },
      });
      healthy = true;
      options.onInserted(highestOffsets(rows.filter(({ partition }) => !dropped.has(partition))));
      bufferedRows.set(buffer.length);
      for (const go of room.splice(0)) go();
      if (buffer.length < limits.flushRows && !closing.signal.aborted) break;
    }
  };

  // One flush at a time: beside another, a retry would take the other's later rows in the table for
  // proof that its own are there.
  const start = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    inserting ??= flush()
      .catch((error) => {
        if (!closing.signal.aborted) options.onFatal(error);
      })
      .finally(() => {
        inserting = undefined;
        schedule();
      });
    return inserting;
  };

  const schedule = () => {
    if (closed || inserting !== undefined || (buffer.length === 0 && untold.size === 0)) return;
    if (buffer.length >= limits.flushRows) void start();
    else timer ??= setTimeout(start, limits.flushIntervalMs);
  };

  const waitForRoom = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const go = () => {
        signal.removeEventListener('abort', go);
        resolve();
      };
      room.push(go);
      signal.addEventListener('abort', go, { once: true });
    });

  return {
    async add(rows, signal, progress) {
      if (closed) return; // not committed anywhere: the next owner reads them again
      for (const row of rows) buffer.push(row);
      if (progress !== undefined) {
        untold.set(progress.partition, further(untold.get(progress.partition), progress));
      }
      bufferedRows.set(buffer.length);
      schedule();
      while (buffer.length >= limits.rowsMax && !closed && !signal.aborted) {
        await waitForRoom(signal);
      }
    },
    drop(partition) {
      buffer = buffer.filter((row) => row.partition !== partition);
      untold.delete(partition);
      dropped.add(partition);
    },
    isHealthy: () => healthy,
    async close(deadlineMs) {
      closed = true;
      const deadline = setTimeout(() => closing.abort(new Error('stopping')), deadlineMs);
      const drained = Promise.resolve(inserting).then(() =>
        closing.signal.aborted ? undefined : start(),
      );
      // An insert that hangs is left alone: the next owner asks the table what became of it.
      await Promise.race([drained, once(closing.signal, 'abort')]);
      clearTimeout(deadline);
      closing.abort(new Error('stopped'));
      for (const go of room.splice(0)) go();
    },
  };
}

function further(known: Progress | undefined, next: Progress): Progress {
  if (known === undefined) return next;
  const receivedAt = Math.max(known.receivedAt ?? -1, next.receivedAt ?? -1);
  return {
    ...next,
    offset: Math.max(known.offset, next.offset),
    receivedAt: receivedAt < 0 ? undefined : receivedAt,
  };
}

function highestOffsets(rows: readonly BufferedRow[]): Map<number, number> {
  const highest = new Map<number, number>();
  for (const { partition, offset } of rows) highest.set(partition, offset);
  return highest;
}
