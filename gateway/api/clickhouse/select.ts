import {
  type ClickHouse,
  type ClickHouseSettings,
  clickHouseErrorName,
  databaseName,
  openClickHouse,
} from '../../../lib/clickhouse/clickhouse-client.ts';
import type { Log } from '../../../lib/log/log.ts';
import { noteDependency } from '../../../lib/metrics/dependencies.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import type { ApiConfig } from '../config.ts';
import { QueryError } from './query-error.ts';

/**
 * Runs one bounded, read-only statement and returns its rows.
 * @param signal aborts the query; by default after `statementMs`
 * @throws QueryError
 */
export type Select = <T>(
  query: string,
  parameters?: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) => Promise<T[]>;

/** Bounds of one statement: ClickHouse stops it after `statementS`, we after `statementMs`. */
export interface StatementBounds {
  readonly statementS: number;
  readonly statementMs: number;
  readonly statementRowsMax: number;
  readonly statementBytesMax: number;
}

/** ClickHouse's names for an exceeded bound. */
const OVER_BOUNDS = new Set([
  ...['TIMEOUT_EXCEEDED', 'TOO_SLOW', 'TOO_MANY_ROWS', 'TOO_MANY_BYTES'],
  ...['TOO_MANY_ROWS_OR_BYTES', 'MEMORY_LIMIT_EXCEEDED'],
]);

/** Failures are logged at most this often. */
const LOG_INTERVAL_MS = 1_000;

export interface SelectOptions {
  /** Name of the caller, for the log. */
  readonly name: string;
  readonly bounds: StatementBounds;
  /** Further ClickHouse settings, added to the settings of the bounds. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

/** Opens a `Select` with a ClickHouse client of its own, which the end of `life` closes. */
export function openOwnSelect(
  config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>,
  life: Lifecycle,
  options: SelectOptions & { readonly connectionsMax: number },
): Select {
  return openSelect(openOwnClickHouse(config, life, options), life.log, options);
}

/** Opens a ClickHouse client for statements within bounds, which the end of `life` closes. */
export function openOwnClickHouse(
  { clickhouseUrl: url, namespace }: Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>,
  life: Lifecycle,
  { name, bounds, connectionsMax }: SelectOptions & { readonly connectionsMax: number },
): ClickHouse {
  const limits = { requestTimeoutMs: bounds.statementMs, connectionsMax };
  const clickhouse = openClickHouse({ url, database: databaseName(namespace), ...limits });
  life.onStop(`clickhouse of ${name}`, () => clickhouse.close());
  return clickhouse;
}

export function openSelect(clickhouse: ClickHouse, log: Log, options: SelectOptions): Select {
  const clickhouse_settings = settingsOf(options);
  const fail = createFailure(options.name, log);
  return async <T>(
    query: string,
    query_params: Readonly<Record<string, unknown>> = {},
    abort_signal = AbortSignal.timeout(options.bounds.statementMs),
  ) => {
    try {
      abort_signal.throwIfAborted();
      const format = 'JSONEachRow';
      const request = { query, query_params, format, abort_signal, clickhouse_settings } as const;
      const rows = await (await clickhouse.query(request)).json<T>();
      noteDependency('clickhouse', true);
      return rows;
    } catch (error) {
      // A statement that we have cancelled says nothing about the server.
      if (!abort_signal.aborted) {
        noteDependency('clickhouse', clickHouseErrorName(error) !== undefined);
      }
      throw fail(error);
    }
  };
}

/** The settings of a bounded statement that only reads. */
export function settingsOf({ bounds, settings }: SelectOptions): ClickHouseSettings {
  return {
    // ClickHouse cancels a query on disconnect only if the query is read-only; up to level 2, the
    // settings below may still be set.
    readonly: '2',
    cancel_http_readonly_queries_on_client_close: 1,
    max_execution_time: bounds.statementS,
    max_rows_to_read: String(bounds.statementRowsMax),
    max_memory_usage: String(bounds.statementBytesMax),
    // A truncated result is an error, regardless of the user's profile.
    timeout_overflow_mode: 'throw',
    read_overflow_mode: 'throw',
    result_overflow_mode: 'throw',
    output_format_json_quote_64bit_integers: 0,
    ...settings,
  };
}

/** Turns errors of statements into `QueryError`, and logs at most one a second. */
export function createFailure(name: string, log: Log) {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (error: unknown): QueryError => {
    if (error instanceof QueryError) return error;
    if (performance.now() - loggedAt >= LOG_INTERVAL_MS) {
      loggedAt = performance.now();
      log.warn({ err: error }, `the ClickHouse query of ${name} failed`);
    }
    const code = clickHouseErrorName(error) ?? '';
    if (OVER_BOUNDS.has(code)) return new QueryError('heavy', error);
    const isBusy = code === 'TOO_MANY_SIMULTANEOUS_QUERIES';
    return new QueryError(isBusy ? 'busy' : 'unavailable', error);
  };
}
