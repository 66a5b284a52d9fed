import { type ClickHouse, clickHouseErrorName } from '../../../lib/clickhouse.ts';
import type { Log } from '../../../lib/log.ts';

/** Why there is no answer of ClickHouse. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  /** `heavy`: over the bounds of a statement; `busy`: it takes no more; `away`: everything else. */
  readonly why: 'heavy' | 'busy' | 'away';
  /** Which bound it was, for whom asked, where it is not one of a statement. */
  readonly detail: string | undefined;
  constructor(why: NoAnswer['why'], cause?: unknown, detail?: string) {
    super(`ClickHouse gives no answer: ${why}`, { cause });
    this.why = why;
    this.detail = detail;
  }
}

/**
 * Rows of one bounded statement that reads.
 * @param signal ends the wait; by default it ends `statementMs` from now
 * @throws NoAnswer
 */
export type Select = <T>(
  query: string,
  parameters?: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) => Promise<T[]>;

/** What one statement may cost: ClickHouse ends it after `statementS`, and we after `statementMs`. */
export interface StatementBounds {
  readonly statementS: number;
  readonly statementMs: number;
  readonly statementRowsMax: number;
  readonly statementBytesMax: number;
}

/** ClickHouse's names of what went over a bound. */
const OVER_BOUNDS = new Set([
  ...['TIMEOUT_EXCEEDED', 'TOO_SLOW', 'TOO_MANY_ROWS', 'TOO_MANY_BYTES'],
  ...['TOO_MANY_ROWS_OR_BYTES', 'MEMORY_LIMIT_EXCEEDED'],
]);

/** How often what fails is logged, at the most. */
const LOG_EVERY_MS = 1_000;

export function openSelect(
  clickhouse: ClickHouse,
  log: Log,
  asker: {
    /** Who asks, for the log. */
    readonly name: string;
    readonly bounds: StatementBounds;
    /** Settings of its own, beside those of the bounds. */
    readonly settings?: Readonly<Record<string, string | number>>;
  },
): Select {
  const { name, bounds } = asker;
  const clickhouse_settings = {
    // ClickHouse ends what nobody waits for any more only where it is readonly; under 2 the rest of
    // these may be set.
    readonly: '2',
    cancel_http_readonly_queries_on_client_close: 1,
    max_execution_time: bounds.statementS,
    max_rows_to_read: String(bounds.statementRowsMax),
    max_memory_usage: String(bounds.statementBytesMax),
    // Whatever the profile of the user says: half an answer is none.
    timeout_overflow_mode: 'throw',
    read_overflow_mode: 'throw',
    result_overflow_mode: 'throw',
    output_format_json_quote_64bit_integers: 0,
    ...asker.settings,
  } as const;
  let loggedAt = Number.NEGATIVE_INFINITY;
  return async <T>(
    query: string,
    parameters: Readonly<Record<string, unknown>> = {},
    abort_signal = AbortSignal.timeout(bounds.statementMs),
  ) => {
    try {
      abort_signal.throwIfAborted();
      const result = await clickhouse.query({
        ...{ query, query_params: parameters, format: 'JSONEachRow' },
        ...{ abort_signal, clickhouse_settings },
      });
      return await result.json<T>();
    } catch (error) {
      if (performance.now() - loggedAt >= LOG_EVERY_MS) {
        loggedAt = performance.now();
        log.warn({ err: error }, `${name} has no answer of ClickHouse`);
      }
      const code = clickHouseErrorName(error) ?? '';
      const isBusy = code === 'TOO_MANY_SIMULTANEOUS_QUERIES';
      throw new NoAnswer(OVER_BOUNDS.has(code) ? 'heavy' : isBusy ? 'busy' : 'away', error);
    }
  };
}
