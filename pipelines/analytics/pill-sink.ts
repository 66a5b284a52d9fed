import { GroupCommit } from '../../lib/batch/group-commit.ts';
import type { Log } from '../../lib/log/log.ts';
import { createCounter, createGauge, createHistogram } from '../../lib/metrics/metrics.ts';
import { retryForever } from '../../lib/timing/backoff.ts';
import type { PillStore, TableProgress } from './clickhouse-pills.ts';
import type { BufferedRow } from './pill-rows.ts';
import type { RepeatRow } from './repeats.ts';

export interface SinkLimits {
  /** A row waits at most this long for its insert to begin, unless another is in flight. */
  readonly flushIntervalMs: number;
  /** This many rows are inserted without waiting. */
  readonly flushRows: number;
  /** Rows that wait behind the insert in flight; at the bound `add` and the consumer wait. */
  readonly rowsMax: number;
}

/** One insert a second or 10,000 rows: every insert is a part that must be merged. */
const SINK_LIMITS: SinkLimits = { flushIntervalMs: 1_000, flushRows: 10_000, rowsMax: 50_000 };

const rowsTotal = createCounter({
  name: 'pillole_analytics_rows_total',
  help: 'Rows inserted into ClickHouse.',
});
const insertSeconds = createHistogram({
  name: 'pillole_analytics_insert_seconds',
  help: 'Duration of one insert.',
  buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
});
const bufferedRows = createGauge({
  name: 'pillole_analytics_buffered_rows',
  help: 'Rows that wait for their insert.',
});

/** Rows of one `add`, and the progress of their partition after them. */
interface Chunk {
  readonly partition: number | undefined;
  readonly rows: readonly BufferedRow[];
  readonly progress: TableProgress | undefined;
  readonly repeats: readonly RepeatRow[];
}

interface SinkOptions {
  readonly store: PillStore;
  readonly log: Log;
  readonly limits?: SinkLimits;
  /** Stores repeats, any of them any number of times; without it they are left out. */
  readonly storeRepeats?: (repeats: readonly RepeatRow[]) => Promise<void>;
  /** Gets the highest offset inserted of each partition. */
  onInserted(offsets: ReadonlyMap<number, number>): void;
  onFatal(error: Error): void;
}

/**
 * Buffers rows and inserts them, one insert at a time. An insert whose answer is lost has an
 * unknown outcome: before a retry the position is read from the table, and rows that the table has
 * are left out; the table merges away duplicates that slip through (a late effect of the lost
 * insert).
 */
export function createPillSink(options: SinkOptions) {
  const limits = options.limits ?? SINK_LIMITS;
  /** Partitions revoked since the insert in flight began. */
  const dropped = new Set<number>();
  const isOurs = ({ partition }: { readonly partition: number }) => !dropped.has(partition);
  let healthy = true;
  let closed = false;
  const waitingForRoom: (() => void)[] = [];
  const letIn = () => {
    bufferedRows.set(group.waitingSize);
    for (const go of waitingForRoom.splice(0)) go();
  };

  const commit = async (chunks: readonly Chunk[], signal: AbortSignal): Promise<never[]> => {
    const rows = chunks.flatMap((chunk) => chunk.rows);
    dropped.clear();
    let attempts = 0;
    try {
      await retryForever(() => writeChunks(options, chunks, attempts++ > 0, isOurs), {
        firstMs: 200,
        maxMs: 3_000,
        signal,
        onError(error) {
          healthy = false;
          const message = 'ClickHouse did not take the rows';
          options.log.warn({ err: error, rows: rows.length, attempts }, message);
        },
      });
      healthy = true;
      // Offsets ascend within a partition: the last one is the highest.
      const inserted = rows.filter(isOurs);
      options.onInserted(new Map(inserted.map(({ partition, offset }) => [partition, offset])));
    } catch (error) {
      if (!signal.aborted) options.onFatal(error as Error);
    }
    letIn();
    return [];
  };
  // One insert at a time: otherwise a retry would take later rows of another insert as proof that
  // its own rows are in the table.
  const group = new GroupCommit<Chunk, never>({
    commit,
    sizeOf: ({ rows, repeats }) => rows.length + repeats.length,
    lingerMs: limits.flushIntervalMs,
    lingerSizeMax: limits.flushRows,
  });

  return {
    /**
     * Takes rows of one partition, offsets ascending; waits when the buffer is full.
     * @param progress how far the partition is with them; published after them, even without rows
     */
    async add(
      rows: readonly BufferedRow[],
      signal: AbortSignal,
      progress?: TableProgress,
      repeats: readonly RepeatRow[] = [],
    ): Promise<void> {
      if (closed) return; // not committed anywhere: the next owner reads the records again
      if (rows.length === 0 && progress === undefined) return;
      const partition = progress?.partition ?? rows[0]?.partition;
      group.push({ partition, rows, progress, repeats });
      bufferedRows.set(group.waitingSize);
      while (group.waitingSize >= limits.rowsMax && !closed && !signal.aborted) {
        await nextRoom(waitingForRoom, signal);
      }
    },
    /** Drops rows of a partition that another member has taken. */
    drop(partition: number): void {
      group.drop((chunk) => chunk.partition === partition);
      dropped.add(partition);
    },
    /** Whether the last insert succeeded. */
    isHealthy: () => healthy,
    /** Inserts the buffered rows, at most until `deadlineMs`. */
    async close(deadlineMs: number): Promise<void> {
      closed = true;
      // An insert that hangs is left alone: the next owner reads the position from the table.
      await group.close(deadlineMs);
      letIn();
    },
  };
}

/** @param isRetry an earlier insert may have taken effect */
async function writeChunks(
  { store, storeRepeats }: SinkOptions,
  chunks: readonly Chunk[],
  isRetry: boolean,
  isOurs: (of: { readonly partition: number }) => boolean,
): Promise<void> {
  const repeats = chunks.flatMap((chunk) => chunk.repeats);
  // Before the rows, whose position says that the repeats below it are stored, too.
  if (repeats.length > 0) await storeRepeats?.(repeats);
  const rows = chunks.flatMap((chunk) => chunk.rows);
  await insertMissing(store, rows, isRetry, isOurs);
  // After the rows, never before: the rows up to a published position are there.
  const progress = furthest(chunks).filter(isOurs);
  if (progress.length > 0) await store.publishProgress(progress);
}

async function insertMissing(
  store: PillStore,
  rows: readonly BufferedRow[],
  isRetry: boolean,
  isOurs: (row: BufferedRow) => boolean,
): Promise<void> {
  const positions = isRetry ? await store.positions() : undefined;
  const isMissing = ({ partition, offset }: BufferedRow) =>
    offset > (positions?.get(partition)?.offset ?? -1);
  const missing = rows.filter((row) => isOurs(row) && isMissing(row));
  if (missing.length === 0) return;
  const end = insertSeconds.startTimer();
  await store.insert(missing);
  end();
  rowsTotal.inc(missing.length);
}

function nextRoom(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      signal.removeEventListener('abort', go);
      resolve();
    };
    waiting.push(go);
    signal.addEventListener('abort', go, { once: true });
  });
}

/** The furthest progress of each partition. */
function furthest(chunks: readonly Chunk[]): TableProgress[] {
  const byPartition = new Map<number, TableProgress>();
  for (const { progress } of chunks) {
    if (progress === undefined) continue;
    byPartition.set(progress.partition, further(byPartition.get(progress.partition), progress));
  }
  return [...byPartition.values()];
}

function further(known: TableProgress | undefined, next: TableProgress): TableProgress {
  if (known === undefined) return next;
  const receivedAt = Math.max(known.receivedAt ?? -1, next.receivedAt ?? -1);
  return {
    ...next,
    offset: Math.max(known.offset, next.offset),
    receivedAt: receivedAt < 0 ? undefined : receivedAt,
  };
}
