import pLimit from 'p-limit';
import { type ClickHouse, clickHouseErrorName } from '../../../lib/clickhouse.ts';
import type { Log } from '../../../lib/log.ts';
import { formatPosition, type Offsets } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** Up to where the log is in the answer. */
export interface AsOf {
  /** Every pill up to here is in it. */
  readonly offsets: Offsets;
  /** Receive time of the newest pill that is in it. */
  readonly receivedAt: Micros | undefined;
  /** Up to here nothing that was received is missing: now, where all of the log is stored. */
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
  /** What the log is known to hold, by partition: offsets of the last processed records. */
  readonly logged: () => Offsets;
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

/** Opens the desk. A statement waits for its turn behind others, for a bounded time. */
export function openDesk({ clickhouse, epoch, log, nowMicros, logged }: DeskOptions): Desk {
  const turns = pLimit(ANALYTICS_LIMITS.runningMax);

  const run = async <T>(statement: string, parameters: Readonly<Record<string, unknown>>) => {
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
  const ask: Desk['ask'] = (statement, parameters) => {
    if (turns.pendingCount >= ANALYTICS_LIMITS.waitingMax) throw new QuestionRefused('overloaded');
    const asked = performance.now();
    return turns(() => {
      const waited = performance.now() - asked;
      if (waited > ANALYTICS_LIMITS.turnMs) throw new QuestionRefused('overloaded');
      return run(statement, parameters);
    });
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
    const known = new Map(logged());
    const before = nowMicros();
    const rows = await ask<{ partition: number; last: number; received_us: number | null }>(
      `SELECT partition, max(offset) AS last,
                toUnixTimestamp64Micro(max(received_at)) AS received_us
         FROM pills_progress WHERE epoch = {epoch:String} GROUP BY partition ORDER BY partition`,
      { epoch },
    );
    const offsets = new Map(rows.map(({ partition, last }) => [partition, last]));
    const times = rows.flatMap(({ received_us: at }) => (at === null ? [] : [at]));
    const receivedAt = times.length === 0 ? undefined : Math.max(...times);
    const hasAll = [...known].every(([partition, last]) => (offsets.get(partition) ?? -1) >= last);
    return { offsets, receivedAt, completeUntil: hasAll ? before : (receivedAt ?? 0) };
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
export function toldAsOf(epoch: string, { offsets, receivedAt }: AsOf, now: Micros) {
  return {
    position: formatPosition(epoch, offsets),
    received_at: receivedAt === undefined ? null : formatTimestamp(receivedAt),
    lag_ms: receivedAt === undefined ? null : Math.max(0, Math.round((now - receivedAt) / 1_000)),
  };
}

/** µs as a parameter of type DateTime64(6): decimal seconds. */
export function seconds(micros: Micros): string {
  const whole = Math.floor(micros / 1e6);
  // Ten digits of seconds: with fewer the parser takes the text for a date.
  return `${String(whole).padStart(10, '0')}.${String(micros - whole * 1e6).padStart(6, '0')}`;
}
