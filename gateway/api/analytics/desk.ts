import { type ClickHouse, clickHouseErrorName } from '../../../lib/clickhouse.ts';
import type { Log } from '../../../lib/log.ts';
import { formatPosition, type Offsets } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { completeUntil, type Logged } from './complete-until.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** Up to where the log is in the answer. */
export interface AsOf {
  /** Every pill up to here is in it. */
  readonly offsets: Offsets;
  /** Receive time of the newest pill that is in it. */
  readonly receivedAt: Micros | undefined;
  /** All of the log is in it. */
  readonly hasAll: boolean;
  /** Up to here nothing that was received is missing: now, where all of the log is in it. */
  readonly completeUntil: Micros;
}

/** Why a question has no answer; thrown, and turned into a problem by the route. */
export class QuestionRefused extends Error {
  override readonly name = 'QuestionRefused';
  readonly why: 'too_large' | 'overloaded' | 'unavailable';

  constructor(why: QuestionRefused['why'], cause?: unknown) {
    super(`analytics: ${why}`, { cause });
    this.why = why;
  }
}

/** Asks ClickHouse, at bounded cost. */
export interface Desk {
  /**
   * Rows of a statement. Times come as ISO 8601.
   * @throws QuestionRefused
   */
  ask<T>(statement: string, parameters: Readonly<Record<string, unknown>>): Promise<T[]>;
  /** How far the table is. What was read a moment ago is still true: the table only grows. */
  asOf(): Promise<AsOf>;
}

export interface DeskOptions {
  readonly clickhouse: ClickHouse;
  readonly epoch: string;
  readonly log: Log;
  readonly nowMicros: () => Micros;
  /** How far the log is known to be, by partition, and whether that is how far it is now. */
  readonly logged: () => Logged;
}

/** What ClickHouse answers when a statement went over one of its bounds. */
const OVER_BOUNDS = new Set([
  'TOO_MANY_ROWS',
  'TOO_MANY_BYTES',
  'TOO_MANY_ROWS_OR_BYTES',
  'TIMEOUT_EXCEEDED',
  'TOO_SLOW',
  'MEMORY_LIMIT_EXCEEDED',
]);

/** Opens the desk. How many ask at a time is bounded by who calls it (question.ts). */
export function openDesk({ clickhouse, epoch, log, nowMicros, logged }: DeskOptions): Desk {
  const ask = async <T>(statement: string, parameters: Readonly<Record<string, unknown>>) => {
    try {
      const result = await clickhouse.query({
        query: statement,
        query_params: parameters,
        format: 'JSONEachRow',
        clickhouse_settings: SETTINGS,
      });
      return await result.json<T>();
    } catch (error) {
      const name = clickHouseErrorName(error);
      if (name !== undefined && OVER_BOUNDS.has(name))
        throw new QuestionRefused('too_large', error);
      log.warn({ err: error }, 'a question to ClickHouse failed');
      throw new QuestionRefused('unavailable', error);
    }
  };
  let kept: { readonly atMs: number; readonly asOf: Promise<AsOf> } | undefined;
  return {
    ask,
    asOf() {
      const atMs = performance.now();
      if (kept !== undefined && atMs - kept.atMs < ANALYTICS_LIMITS.asOfKeptMs) return kept.asOf;
      const asOf = readAsOf();
      kept = { atMs, asOf };
      asOf.catch(() => {
        kept = undefined;
      });
      return asOf;
    },
  };

  async function readAsOf(): Promise<AsOf> {
    const known = logged();
    const before = nowMicros();
    const rows = await ask<{ partition: number; last: number; received_us: number | null }>(
      `SELECT partition, max(offset) AS last,
                toUnixTimestamp64Micro(max(received_at)) AS received_us
         FROM pills_progress WHERE epoch = {epoch:String} GROUP BY partition ORDER BY partition`,
      { epoch },
    );
    const stored = new Map(
      rows.map(({ partition, last, received_us: at }) => [
        partition,
        { offset: last, receivedAt: at ?? undefined },
      ]),
    );
    const until = completeUntil(known, stored, before);
    const times = rows.map(({ received_us: at }) => at ?? 0);
    return {
      offsets: new Map(rows.map(({ partition, last }) => [partition, last])),
      receivedAt: times.length === 0 ? undefined : Math.max(...times),
      hasAll: known.isCurrent && until === before,
      completeUntil: until,
    };
  }
}

const SETTINGS = {
  readonly: '2',
  output_format_json_quote_64bit_integers: 0,
  date_time_output_format: 'iso',
  max_execution_time: ANALYTICS_LIMITS.executionS,
  timeout_overflow_mode: 'throw',
  max_memory_usage: String(ANALYTICS_LIMITS.memoryBytes),
  max_rows_to_read: String(ANALYTICS_LIMITS.rowsRead),
  max_result_rows: String(ANALYTICS_LIMITS.rowsAnswered),
  result_overflow_mode: 'throw',
  read_overflow_mode: 'throw',
  cancel_http_readonly_queries_on_client_close: 1,
} as const;

/** `as_of` as answers tell it. */
export function toldAsOf(epoch: string, { offsets, receivedAt, hasAll }: AsOf, now: Micros) {
  return {
    position: formatPosition(epoch, offsets),
    received_at: receivedAt === undefined ? null : formatTimestamp(receivedAt),
    lag_ms: hasAll
      ? 0
      : receivedAt === undefined
        ? null
        : Math.max(0, Math.round((now - receivedAt) / 1_000)),
  };
}
