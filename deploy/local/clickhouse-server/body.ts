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

/** Encodings that the engine can decode but Node cannot. */
const DECODED_BY_ENGINE = new Set(['lz4', 'zstd', 'xz']);

/** Files with rows that wait for their insert; the total size is bounded. */
export type Spool = Awaited<ReturnType<typeof openSpool>>;

/**
 * The chunks of a body without its Content-Encoding. `unpack` lets the engine decode, from file to
 * file, what Node cannot.
 */
export function decoded(
  request: IncomingMessage,
  spool: Spool,
  unpack: (from: string, to: string, method: string) => Promise<void>,
): AsyncIterable<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').toLowerCase();
  if (encoding === 'identity' || encoding === '') return request as AsyncIterable<Buffer>;
  if (DECODED_BY_ENGINE.has(encoding)) {
    return spool.transformed(request, (from, to) => unpack(from, to, encoding));
  }
  const decoder = DECODERS[encoding]?.();
  if (decoder === undefined) {
    throw refusal('NOT_IMPLEMENTED', `Content-Encoding ${encoding} is not supported`, 415);
  }
  request.once('error', (error) => decoder.destroy(error));
  request.pipe(decoder);
  return translateErrors(decoder);
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

async function* translateErrors(decoder: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of decoder) yield chunk as Buffer;
  } catch (error) {
    throw refusal('CANNOT_DECOMPRESS', `Body: ${(error as Error).message}`, 400);
  }
}

/** Reads chunks until the end, or until they have at least `bytes`. */
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

/** Reads the rest of a body as text. @throws ClickHouseError above the bound of a statement */
export async function readStatement(begin: Buffer, rest: AsyncIterator<Buffer>): Promise<string> {
  const body = Buffer.concat([begin, await readUpTo(rest, STATEMENT_BYTES_MAX + 1 - begin.length)]);
  if (body.length > STATEMENT_BYTES_MAX) {
    throw refusal(
      'QUERY_IS_TOO_LARGE',
      `A statement may have at most ${STATEMENT_BYTES_MAX} bytes`,
    );
  }
  return body.toString('utf8');
}

/** The chunks read so far, then the rest. */
export async function* concatenate(
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

/** Opens a spool in `<cwd>/<folder>` and deletes the files that a killed server left. */
export async function openSpool(folder: string) {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  let total = 0;

  /**
   * Writes the rows of an insert to a file.
   * @returns the file, relative to the working folder of the server
   * @throws ClickHouseError above the bounds
   */
  async function write(chunks: AsyncIterable<Buffer>) {
    const file = path.join(folder, randomUUID());
    const stream = createWriteStream(file, { flags: 'wx' });
    const done = finished(stream);
    done.catch(() => {}); // awaited below; until then an error must not end the process
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
          throw refusal(
            'TOO_MANY_SIMULTANEOUS_QUERIES',
            'Too many rows are waiting, try again later',
          );
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

  /** The chunks, transformed by `work` from file to file; both files last for the iteration. */
  async function* transformed(
    chunks: AsyncIterable<Buffer>,
    work: (from: string, to: string) => Promise<void>,
  ): AsyncGenerator<Buffer> {
    const original = await write(chunks);
    const output = `${original.file}.made`;
    try {
      if (original.bytes === 0) return;
      await work(original.file, output);
      if ((await stat(output)).size > INSERT_BYTES_MAX) throw tooLarge();
      for await (const chunk of createReadStream(output)) yield chunk as Buffer;
    } finally {
      await original.remove();
      await rm(output, { force: true });
    }
  }

  return { write, transformed };
}

function tooLarge() {
  return refusal('QUERY_IS_TOO_LARGE', `An insert may have at most ${INSERT_BYTES_MAX} bytes`);
}
