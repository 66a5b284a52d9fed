import type { ClickHouse } from '../../../lib/clickhouse/clickhouse-client.ts';
import type { Log } from '../../../lib/log/log.ts';
import { QueryError } from './query-error.ts';
import { createFailure, type SelectOptions, settingsOf } from './select.ts';

/** ClickHouse's names of the formats that it writes for customers. */
export type OutputFormat = 'ArrowStream' | 'Parquet' | 'CSV' | 'CSVWithNames' | 'JSONEachRow';

/** A statement, without its list of columns, that selects given rows in a given order. */
export interface Statement {
  readonly query: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Runs one bounded, read-only statement; ClickHouse writes its rows in a format. */
export type ReadBytes = (
  statement: Statement,
  format: OutputFormat,
  options?: { readonly encoding?: 'gzip' | 'zstd'; readonly signal?: AbortSignal },
) => Promise<Buffer>;

/** Rows of a Parquet row group: the memory of its writer grows with them. */
export const ROW_GROUP_ROWS_MAX = 100_000;

/** How ClickHouse writes: real types, and nothing that depends on the profile of its user. */
export const FORMAT_SETTINGS = {
  // An error after the first row gets a status, instead of an answer that ends early.
  wait_end_of_query: 1,
  output_format_arrow_low_cardinality_as_dictionary: 1,
  output_format_arrow_string_as_string: 1,
  output_format_arrow_compression_method: 'none',
  output_format_parquet_string_as_string: 1,
  output_format_parquet_compression_method: 'zstd',
  output_format_parquet_row_group_size: String(ROW_GROUP_ROWS_MAX),
  // Several row groups would be in memory at a time.
  output_format_parquet_parallel_encoding: 0,
  // Both hold places in the file, which joining slices to one file changes.
  output_format_parquet_write_page_index: 0,
  output_format_parquet_write_bloom_filter: 0,
  output_format_csv_crlf_end_of_line: 1,
  output_format_json_escape_forward_slashes: 0,
  date_time_output_format: 'iso',
  // An alias may have the name of the column that it is made from.
  prefer_column_name_to_alias: 1,
} as const;

/**
 * Opens a reader of whole results. @param bytesMax of one result, which is in memory as a whole
 * @throws QueryError; `heavy` also if the result is too long
 */
export function openReadBytes(
  clickhouse: ClickHouse,
  log: Log,
  options: SelectOptions & { readonly bytesMax: number },
): ReadBytes {
  const fail = createFailure(options.name, log);
  const settings = { ...settingsOf(options), ...FORMAT_SETTINGS };
  return async ({ query, params }, format, { encoding, signal } = {}) => {
    const timeout = AbortSignal.timeout(options.bounds.statementMs);
    const abort_signal = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
    try {
      abort_signal.throwIfAborted();
      const { stream } = await clickhouse.exec({
        query: `${query} FORMAT ${format}`,
        query_params: { ...params },
        abort_signal,
        decompress_response_stream: false,
        clickhouse_settings: { ...settings, enable_http_compression: encoding ? 1 : 0 },
        ...(encoding && { http_headers: { 'accept-encoding': encoding } }),
      });
      const parts: Buffer[] = [];
      let bytes = 0;
      for await (const part of stream as AsyncIterable<Buffer>) {
        bytes += part.length;
        if (bytes > options.bytesMax) {
          throw new QueryError('heavy', undefined, `A result exceeds ${options.bytesMax} bytes.`);
        }
        parts.push(part);
      }
      return Buffer.concat(parts);
    } catch (error) {
      throw fail(error);
    }
  };
}
