import { type ClickHouse, clickHouseErrorName } from '../../../lib/clickhouse.ts';
import type { Log } from '../../../lib/log.ts';
import { HISTORY_LIMITS } from './limits.ts';

/** Why there is no answer of ClickHouse. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  /** `heavy`: over the bounds of a statement; `busy`: it takes no more; `away`: everything else. */
  readonly why: 'heavy' | 'busy' | 'away';
  constructor(why: NoAnswer['why'], cause: unknown) {
    super(`ClickHouse gives no answer: ${why}`, { cause });
    this.why = why;
  }
}

/** Runs one bounded statement that reads. @throws NoAnswer */
export type Select = <T>(query: string, params?: Readonly<Record<string, unknown>>) => Promise<T[]>;

const HEAVY = new Set([
  ...['TIMEOUT_EXCEEDED', 'TOO_MANY_ROWS', 'TOO_MANY_BYTES', 'MEMORY_LIMIT_EXCEEDED'],
  ...['TOO_MANY_ROWS_OR_BYTES', 'TOO_SLOW'],
]);

/** How often what fails is logged, at the most. */
const LOG_EVERY_MS = 1_000;

export function createSelect(
  clickhouse: ClickHouse,
  log: Log,
  bounds: { readonly statementS: number; readonly statementMs: number } = HISTORY_LIMITS,
): Select {
  let loggedAt = Number.NEGATIVE_INFINITY;
  const tell = (error: unknown) => {
    if (performance.now() - loggedAt < LOG_EVERY_MS) return;
    loggedAt = performance.now();
    log.warn({ err: error }, 'history has no answer of ClickHouse');
  };
  return async <T>(query: string, params: Readonly<Record<string, unknown>> = {}) => {
    try {
      const result = await clickhouse.query({
        ...{ query, query_params: { ...params }, format: 'JSONEachRow' },
        abort_signal: AbortSignal.timeout(bounds.statementMs),
        clickhouse_settings: {
          max_execution_time: bounds.statementS,
          max_rows_to_read: String(HISTORY_LIMITS.statementRowsMax),
          max_memory_usage: String(HISTORY_LIMITS.statementBytesMax),
          max_threads: HISTORY_LIMITS.statementThreads,
          output_format_json_quote_64bit_integers: 0,
          cancel_http_readonly_queries_on_client_close: 1,
        },
      });
      return await result.json<T>();
    } catch (error) {
      const name = clickHouseErrorName(error) ?? '';
      tell(error);
      const isBusy = name === 'TOO_MANY_SIMULTANEOUS_QUERIES';
      throw new NoAnswer(HEAVY.has(name) ? 'heavy' : isBusy ? 'busy' : 'away', error);
    }
  };
}
