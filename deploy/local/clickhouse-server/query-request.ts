import type { IncomingMessage } from 'node:http';
import type { User } from './authentication.ts';
import { refusal } from './clickhouse-error.ts';
import { PARAMETERS_MAX } from './limits.ts';

/** A request in ClickHouse's HTTP interface, as its documentation describes it. */
export type QueryRequest = ReturnType<typeof readQueryRequest>;

/** Parameters of the interface itself; all others are settings. */
const NOT_SETTINGS = new Set([
  ...['query', 'database', 'default_format', 'user', 'password', 'query_id', 'session_id'],
  ...['session_timeout', 'session_check', 'close_session', 'quota_key', 'role', 'stacktrace'],
  ...['buffer_size', 'wait_end_of_query', 'enable_http_compression', 'http_zlib_compression_level'],
  ...['client_protocol_version', 'send_progress_in_http_headers', 'compress', 'decompress'],
  ...['http_headers_progress_interval_ms', 'cancel_http_readonly_queries_on_client_close'],
]);

/** Reads the URL, the headers, and form fields, which count as URL parameters. */
export function readQueryRequest(
  request: IncomingMessage,
  url: URL,
  form: ReadonlyMap<string, string>,
  user: User,
) {
  const fields = new Map([...url.searchParams, ...form]);
  for (const name of ['compress', 'decompress']) {
    if (fields.get(name) === '1') {
      throw refusal(
        'NOT_IMPLEMENTED',
        `${name}=1 is not supported: use Content-Encoding and Accept-Encoding`,
      );
    }
  }
  if (fields.size > PARAMETERS_MAX) {
    throw refusal('BAD_ARGUMENTS', `A request may have at most ${PARAMETERS_MAX} parameters`);
  }
  const settings: [string, string][] = [];
  const params: [string, string][] = [];
  for (const [name, value] of fields) {
    if (name.startsWith('param_')) params.push([name.slice('param_'.length), value]);
    else if (!NOT_SETTINGS.has(name)) settings.push([name, value]);
  }
  return {
    user,
    database: fields.get('database') || header(request, 'x-clickhouse-database'),
    /** The statement or its beginning. */
    query: fields.get('query') || undefined,
    format:
      fields.get('default_format') || header(request, 'x-clickhouse-format') || 'TabSeparated',
    /** The client accepts a compressed response. */
    compressed: fields.get('enable_http_compression') === '1',
    settings,
    params,
  };
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
