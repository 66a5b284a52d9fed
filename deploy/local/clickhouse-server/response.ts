import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ClickHouseError } from './clickhouse-error.ts';
import type { Executed, Executor } from './execute.ts';

const TYPES: readonly [RegExp, string][] = [
  [/^JSON(Compact|Strings)*(EachRow.*|LinesDescription)?$/i, 'application/json; charset=UTF-8'],
  [/EachRow/i, 'application/x-ndjson; charset=UTF-8'],
  [/^JSON/i, 'application/json; charset=UTF-8'],
  [/^CSV/i, 'text/csv; charset=UTF-8'],
  [/^(TSV|TabSeparated)/i, 'text/tab-separated-values; charset=UTF-8'],
  [/^(Native|RowBinary|Arrow|Parquet|Avro|ORC|MsgPack|Protobuf)/i, 'application/octet-stream'],
];

/** Smaller results cost more to compress than they save. */
const GZIP_FROM_BYTES = 1024;

/** Sends a result as ClickHouse's HTTP interface does. */
export async function sendResult(
  http: IncomingMessage,
  response: ServerResponse,
  executed: Executed,
  queryId: string,
  { engine, spool }: Pick<Executor, 'engine' | 'spool'>,
): Promise<void> {
  const { result, request, format } = executed;
  const type = TYPES.find(([pattern]) => pattern.test(format))?.[1] ?? 'text/plain; charset=UTF-8';
  const encoding = request.compressed ? encodingOf(http, result.bytes.length) : undefined;
  const compress = {
    gzip: () => promisify(gzip)(result.bytes, { level: 1 }),
    // Node compresses with zstd only since version 22.15; the engine does it from file to file.
    zstd: () =>
      readAll(spool.transformed(once(result.bytes), (from, to) => engine.pack(from, to, 'zstd'))),
  };
  const body = encoding === undefined ? result.bytes : await compress[encoding]();
  response.writeHead(200, {
    ...commonHeaders(queryId),
    'content-type': type,
    'x-clickhouse-format': format,
    'x-clickhouse-summary': summary(executed),
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    'content-length': body.length,
  });
  response.end(body);
}

/** The encoding that the client prefers, of those that ClickHouse has too. */
function encodingOf(http: IncomingMessage, bytes: number): 'gzip' | 'zstd' | undefined {
  const accepted = String(http.headers['accept-encoding'] ?? '');
  if (bytes > 0 && /\bzstd\b/i.test(accepted) && !/\bgzip\b/i.test(accepted)) return 'zstd';
  return bytes >= GZIP_FROM_BYTES && /\bgzip\b/i.test(accepted) ? 'gzip' : undefined;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Buffer> {
  yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

async function readAll(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of chunks) parts.push(part);
  return Buffer.concat(parts);
}

/** Sends an error: a status for programs, the text of ClickHouse for people. */
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

/** Numbers are strings, as in ClickHouse. chdb does not count the rows that it writes. */
function summary({ result, insertedBytes }: Executed): string {
  return JSON.stringify({
    read_rows: String(result.rowsRead),
    read_bytes: String(result.bytesRead),
    written_rows: insertedBytes > 0 ? String(result.rowsRead) : '0',
    written_bytes: insertedBytes > 0 ? String(result.bytesRead) : '0',
    result_bytes: String(result.bytes.length),
    elapsed_ns: String(Math.round(result.elapsedS * 1e9)),
  });
}
