import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import type { Readable, Transform } from 'node:stream';
import { finished } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { refusal } from './clickhouse-error.ts';
import { INSERT_BYTES_MAX, SPOOL_BYTES_MAX, STATEMENT_BYTES_MAX } from './limits.ts';

/** Encodings that Node cannot undo; the engine can. */
const UNDONE_BY_ENGINE = new Set(['lz4', 'zstd', 'xz']);

/** The rows of an insert: on disk instead of in memory. */
export interface Rows {
  /** Relative to the working folder of the server. */
  readonly file: string;
  readonly bytes: number;
  remove(): Promise<void>;
}

/** Where rows wait for their turn, bounded in all. */
export interface Spool {
  /** Writes the chunks to a file. @throws ClickHouseError over the bounds. */
  keep(chunks: AsyncIterable<Buffer>): Promise<Rows>;
  /** The chunks after `work` made another file of them; both files go with the iteration. */
  transformed(
    chunks: AsyncIterable<Buffer>,
    work: (from: string, to: string) => Promise<void>,
  ): AsyncIterable<Buffer>;
}

/**
 * The chunks of a body, undone of its Content-Encoding. `unpack` lets the engine undo what Node
 * cannot, from a file to a file.
 */
export function decoded(
  request: IncomingMessage,
  spool: Spool,
  unpack: (from: string, to: string, method: string) => Promise<void>,
): AsyncIterable<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').toLowerCase();
  if (encoding === 'identity' || encoding === '') return request as AsyncIterable<Buffer>;
  if (UNDONE_BY_ENGINE.has(encoding)) {
    return spool.transformed(request, (from, to) => unpack(from, to, encoding));
  }
  const decoder = DECODERS[encoding]?.();
  if (decoder === undefined) {
    throw refusal('NOT_IMPLEMENTED', `Content-Encoding ${encoding} is not known here`, 415);
  }
  request.once('error', (error) => decoder.destroy(error));
  request.pipe(decoder);
  return wordedErrors(decoder);
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

async function* wordedErrors(decoder: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of decoder) yield chunk as Buffer;
  } catch (error) {
    throw refusal('CANNOT_DECOMPRESS', `Body: ${(error as Error).message}`, 400);
  }
}

/** Collects chunks until the end or until there are at least `bytes`. */
export async function readUpTo(chunks: AsyncIterator<Buffer>, bytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  while (size < bytes) {
    const next = await chunks.next();
    if (next.done === true) break;
    parts.push(next.value);
    size += next.value.length;
  }
  return Buffer.concat(parts);
}

/** The rest of a body as text. @throws ClickHouseError when it is over the bound of a statement. */
export async function readStatement(begin: Buffer, rest: AsyncIterator<Buffer>): Promise<string> {
  const body = Buffer.concat([begin, await readUpTo(rest, STATEMENT_BYTES_MAX + 1 - begin.length)]);
  if (body.length > STATEMENT_BYTES_MAX) {
    throw refusal('QUERY_IS_TOO_LARGE', `A statement has at most ${STATEMENT_BYTES_MAX} bytes`);
  }
  return body.toString('utf8');
}

/** Chunks read so far, then the rest. */
export async function* rejoined(
  begin: Buffer,
  rest: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer> {
  if (begin.length > 0) yield begin;
  for (;;) {
    const next = await rest.next();
    if (next.done === true) return;
    yield next.value;
  }
}

/** A spool in `<cwd>/<folder>`, emptied first: what is there is a killed server's. */
export async function openSpool(folder: string): Promise<Spool> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  let total = 0;

  async function keep(chunks: AsyncIterable<Buffer>): Promise<Rows> {
    const file = path.join(folder, randomUUID());
    const stream = createWriteStream(file, { flags: 'wx' });
    const done = finished(stream);
    done.catch(() => {}); // awaited below; an early error must not end the process
    let bytes = 0;
    const remove = async () => {
      total -= bytes;
      bytes = 0;
      await rm(file, { force: true });
    };
    try {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        total += chunk.length;
        if (bytes > INSERT_BYTES_MAX) throw tooLarge();
        if (total > SPOOL_BYTES_MAX) {
          throw refusal('TOO_MANY_SIMULTANEOUS_QUERIES', 'Too many rows wait, try again later');
        }
        if (!stream.write(chunk)) await once(stream, 'drain');
      }
      stream.end();
      await done;
      return { file, bytes, remove };
    } catch (error) {
      stream.destroy();
      await remove();
      throw error;
    }
  }

  async function* transformed(
    chunks: AsyncIterable<Buffer>,
    work: (from: string, to: string) => Promise<void>,
  ): AsyncGenerator<Buffer> {
    const original = await keep(chunks);
    const made = `${original.file}.made`;
    try {
      if (original.bytes === 0) return;
      await work(original.file, made);
      if ((await stat(made)).size > INSERT_BYTES_MAX) throw tooLarge();
      for await (const chunk of createReadStream(made)) yield chunk as Buffer;
    } finally {
      await original.remove();
      await rm(made, { force: true });
    }
  }

  return { keep, transformed };
}

function tooLarge() {
  return refusal('QUERY_IS_TOO_LARGE', `An insert has at most ${INSERT_BYTES_MAX} bytes`);
}
