import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ClickHouseError } from './clickhouse-error.ts';
import type { Executed } from './execute.ts';

const TYPES: readonly [RegExp, string][] = [
  [/^JSON(Compact|Strings)*(EachRow.*|LinesDescription)?$/i, 'application/json; charset=UTF-8'],
  [/EachRow/i, 'application/x-ndjson; charset=UTF-8'],
  [/^JSON/i, 'application/json; charset=UTF-8'],
  [/^CSV/i, 'text/csv; charset=UTF-8'],
  [/^(TSV|TabSeparated)/i, 'text/tab-separated-values; charset=UTF-8'],
  [/^(Native|RowBinary|Arrow|Parquet|Avro|ORC|MsgPack|Protobuf)/i, 'application/octet-stream'],
];

/** Below this, compression costs more than it saves. */
const GZIP_FROM_BYTES = 1024;

/** Sends a result in the form ClickHouse's HTTP interface gives it. */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  executed: Executed,
  queryId: string,
): Promise<void> {
  const { answer, ask, format } = executed;
  const type = TYPES.find(([pattern]) => pattern.test(format))?.[1] ?? 'text/plain; charset=UTF-8';
  const wantsGzip =
    ask.compressed && /\bgzip\b/i.test(String(request.headers['accept-encoding'] ?? ''));
  const compress = wantsGzip && answer.bytes.length >= GZIP_FROM_BYTES;
  const body = compress ? await promisify(gzip)(answer.bytes, { level: 1 }) : answer.bytes;
  response.writeHead(200, {
    ...commonHeaders(queryId),
    'content-type': type,
    'x-clickhouse-format': format,
    'x-clickhouse-summary': summary(executed),
    ...(compress ? { 'content-encoding': 'gzip' } : {}),
    'content-length': body.length,
  });
  response.end(body);
}

/** Sends an error: the status for programs, ClickHouse's text for people. */
export function sendError(
  response: ServerResponse,
  failed: ClickHouseError,
  version: string,
  queryId: string,
): void {
  if (response.headersSent || response.destroyed) return;
  const text = failed.message.includes('(version ')
    ? failed.message
    : `${failed.message} (version ${version})`;
  response.writeHead(failed.status, {
    ...commonHeaders(queryId),
    'content-type': 'text/plain; charset=UTF-8',
    'x-clickhouse-exception-code': failed.code,
    ...(failed.status === 503 ? { 'retry-after': '1' } : {}),
  });
  response.end(`${text}\n`);
}

function commonHeaders(queryId: string): Record<string, string> {
  return {
    'x-clickhouse-query-id': queryId,
    'x-clickhouse-timezone': 'UTC',
    'x-clickhouse-server-display-name': 'pillole-local',
  };
}

/** Numbers as strings, as ClickHouse writes them. chdb does not count what it wrote. */
function summary({ answer, insertedBytes }: Executed): string {
  return JSON.stringify({
    read_rows: String(answer.rowsRead),
    read_bytes: String(answer.bytesRead),
    written_rows: insertedBytes > 0 ? String(answer.rowsRead) : '0',
    written_bytes: insertedBytes > 0 ? String(answer.bytesRead) : '0',
    result_bytes: String(answer.bytes.length),
    elapsed_ns: String(Math.round(answer.elapsedS * 1e9)),
  });
}
