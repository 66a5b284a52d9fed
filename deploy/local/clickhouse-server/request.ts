import type { IncomingMessage } from 'node:http';
import { refusal } from './clickhouse-error.ts';

export type User = 'default' | 'analyst';

/** What a client asks for: ClickHouse's HTTP interface, as its documentation lays it out. */
export interface Ask {
  readonly user: User;
  readonly database: string | undefined;
  readonly queryId: string | undefined;
  /** The statement, or its beginning, from the URL or the form. */
  readonly query: string | undefined;
  readonly format: string;
  /** `enable_http_compression=1`: the client takes a compressed answer. */
  readonly compressed: boolean;
  readonly settings: readonly [string, string][];
  readonly params: readonly [string, string][];
}

/** Parameters of the interface itself; every other one is a setting. */
const NOT_SETTINGS = new Set([
  ...['query', 'database', 'default_format', 'user', 'password', 'query_id', 'session_id'],
  ...['session_timeout', 'session_check', 'close_session', 'quota_key', 'role', 'stacktrace'],
  ...['buffer_size', 'wait_end_of_query', 'enable_http_compression', 'http_zlib_compression_level'],
  ...[
    'client_protocol_version',
    'send_progress_in_http_headers',
    'http_headers_progress_interval_ms',
  ],
  ...['cancel_http_readonly_queries_on_client_close', 'compress', 'decompress'],
]);

/** Reads URL and headers (and form fields, which count like URL parameters). */
export function readAsk(
  request: IncomingMessage,
  url: URL,
  form: ReadonlyMap<string, string>,
): Ask {
  const fields = new Map([...url.searchParams, ...form]);
  for (const name of ['compress', 'decompress']) {
    if (fields.get(name) === '1') {
      throw refusal('NOT_IMPLEMENTED', `${name}=1: use Content-Encoding and Accept-Encoding`);
    }
  }
  const settings: [string, string][] = [];
  const params: [string, string][] = [];
  for (const [name, value] of fields) {
    if (name.startsWith('param_')) params.push([name.slice('param_'.length), value]);
    else if (!NOT_SETTINGS.has(name)) settings.push([name, value]);
  }
  return {
    user: userOf(request, fields),
    database: fields.get('database') || header(request, 'x-clickhouse-database'),
    queryId: fields.get('query_id') || undefined,
    query: fields.get('query') || undefined,
    format:
      fields.get('default_format') || header(request, 'x-clickhouse-format') || 'TabSeparated',
    compressed: fields.get('enable_http_compression') === '1',
    settings,
    params,
  };
}

/** No passwords: the server is reachable from this machine alone. */
function userOf(request: IncomingMessage, fields: ReadonlyMap<string, string>): User {
  const basic = /^Basic (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const name =
    header(request, 'x-clickhouse-user') ??
    (basic === undefined ? undefined : Buffer.from(basic, 'base64').toString().split(':', 1)[0]) ??
    fields.get('user') ??
    'default';
  if (name === 'default' || name === 'analyst') return name;
  throw refusal('AUTHENTICATION_FAILED', `${name}: there are only the users default and analyst`);
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
