import type { Micros } from '../../schemas/timestamp.ts';

/** `fast`: as fast as possible; a number: a multiple of the recorded pace. */
export type Pace = 'fast' | number;

export type Schedule = ReturnType<typeof createSchedule>;

interface ScheduleOptions {
  readonly pace: Pace;
  /** `now`: re-stamped from the start on; `own`: as in the file, then pills are backfill. */
  readonly time: 'now' | 'own';
  readonly start: Micros;
  readonly rows: number;
  /** Earliest and latest time in the file. */
  readonly first: Micros;
  readonly last: Micros;
}

/** Timestamps of a fast run assume this rate, which one connection roughly reaches. */
export const FAST_ROWS_PER_S = 20_000;
/** Timestamps may be 300 s ahead of the gateway's clock; a fast run stays below that. */
const FAST_SPAN_MAX_MICROS = 240_000_000;

/** `recorded`, `fast` or `<factor>x`. @returns undefined for anything else. */
export function parsePace(text: string): Pace | undefined {
  if (text === 'fast') return 'fast';
  if (text === 'recorded') return 1;
  const match = /^(\d{1,7}(?:\.\d{1,6})?)x$/.exec(text);
  const factor = Number(match?.[1]);
  return factor > 0 ? factor : undefined;
}

/**
 * Plans a run. The plan follows from the options alone, so that a second run with the same start
 * makes the same pills. Re-stamped times keep the file's distances divided by the pace, and are the
 * times of sending. A fast run has no pace: the file's distances are scaled to the time that sending
 * takes at about 20,000 rows a second, so that all pills are live.
 */
export function createSchedule(options: ScheduleOptions) {
  const { pace, time, start, first, last } = options;
  const squeeze = pace === 'fast' ? fastSqueeze(options) : 1 / pace;
  const shifted = (at: Micros) => Math.floor((at - first) * squeeze);
  const clamp = (at: Micros) => Math.min(Math.max(at, first), last);
  return {
    /** Milliseconds after the start at which a row of this time is due. */
    dueMs: (at: Micros): number => (pace === 'fast' ? 0 : shifted(clamp(at)) / 1000),
    /** Timestamp of the pill of a row of this time. */
    stamp: (at: Micros): Micros => (time === 'own' ? at : start + shifted(clamp(at))),
  };
}

function fastSqueeze({ rows, first, last }: ScheduleOptions): number {
  const span = Math.min(FAST_SPAN_MAX_MICROS, Math.max(1e6, (rows / FAST_ROWS_PER_S) * 1e6));
  return Math.min(1, span / Math.max(1, last - first));
}

/** Clock of a schedule; tests pass their own. */
export interface PaceClock {
  /** Milliseconds since the start of the run. */
  elapsedMs(): number;
  sleep(ms: number): Promise<void>;
}

/** Timers are limited to 2^31 ms, and a run should notice an abort. */
const SLEEP_MAX_MS = 60_000;

/**
 * Yields rows when they are due, in order. Rows that fall due while the last batch is in flight form
 * one batch, up to `batchMax`: a slow service leads to larger batches, not to a backlog.
 */
export async function* dueBatches<T>(
  rows: AsyncIterable<T>,
  dueMs: (row: T) => number,
  batchMax: number,
  clock: PaceClock,
): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const row of rows) {
    const due = dueMs(row);
    if (batch.length === batchMax || (batch.length > 0 && due > clock.elapsedMs())) {
      yield batch;
      batch = [];
    }
    for (let wait = due - clock.elapsedMs(); wait > 0; wait = due - clock.elapsedMs()) {
      await clock.sleep(Math.min(wait, SLEEP_MAX_MS));
    }
    batch.push(row);
  }
  if (batch.length > 0) yield batch;
}
