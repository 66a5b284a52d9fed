import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { parsePosition } from '../../../schemas/position.ts';
import {
  EMPTY_RECEIPT,
  joinReceipts,
  type ReceiptSum,
  receiptOf,
} from '../../../schemas/receipt.ts';
import type { ReadBytes } from '../clickhouse/read-bytes.ts';
import type { Select } from '../clickhouse/select.ts';
import { TYPED_COLUMNS } from '../history/history-pill.ts';
import { formatSpec } from './export-formats.ts';
import {
  type ExportKey,
  endOfSlice,
  receiptOfSlice,
  type StoredRequest,
  selectRange,
  selectSlice,
} from './export-query.ts';
import { EXPORT_LIMITS } from './limits.ts';

/** Bytes hashed and written between two turns of the event loop: 1 ms. */
const CHUNK_BYTES = 1_048_576;

export interface WriterDeps {
  readonly select: Select;
  readonly readBytes: ReadBytes;
  readonly folder: string;
}

/** An export that cannot be finished: a later attempt would fail as well. */
export class ExportFailure extends Error {
  override readonly name = 'ExportFailure';
  readonly problem: 'export_too_large' | 'export_incomplete';
  constructor(problem: ExportFailure['problem']) {
    super(problem);
    this.problem = problem;
  }
}

export interface WriteOptions {
  /** Name of the finished file; no other attempt has it. */
  readonly name: string;
  readonly request: StoredRequest;
  readonly position: string;
  /** After each slice; false ends the export, because it is no longer ours. */
  readonly onSlice: (done: { rows: number; bytes: number }) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/**
 * Writes an export slice by slice: ClickHouse writes each slice in the format, and statements are
 * short, so that others get their turn and memory is bounded. The file is written beside its place
 * and renamed when it is complete and on disk.
 * @returns undefined if `onSlice` ended it
 * @throws QueryError, ExportFailure, and errors of the disk; then no file is left
 */
export async function writeExport(deps: WriterDeps, options: WriteOptions) {
  const file = path.join(deps.folder, options.name);
  const part = `${file}.part`;
  await mkdir(deps.folder, { recursive: true, mode: 0o700 });
  const handle = await open(part, 'wx', 0o600);
  try {
    const written = await writeSlices(deps, options, handle);
    if (written === undefined) return undefined;
    await handle.sync();
    await rename(part, file);
    return { ...written, file: options.name };
  } finally {
    await handle.close();
    await rm(part, { force: true });
  }
}

async function writeSlices(
  { select, readBytes }: WriterDeps,
  { request, position, onSlice, signal }: WriteOptions,
  handle: FileHandle,
) {
  const spec = formatSpec(request.format);
  const parts = spec.parts();
  const range = selectRange(request.range, position);
  const hash = createHash('sha256');
  let bytes = 0;
  const append = async (data: Buffer) => {
    bytes += data.length;
    if (bytes > EXPORT_LIMITS.fileBytesMax) throw new ExportFailure('export_too_large');
    for (let at = 0; at < data.length; at += CHUNK_BYTES) {
      const chunk = data.subarray(at, at + CHUNK_BYTES);
      hash.update(chunk);
      await handle.writeFile(chunk);
      await turn();
    }
  };
  let sum: ReceiptSum = EMPTY_RECEIPT;
  let after: ExportKey | undefined;
  for (let slice = 0; ; slice += 1) {
    signal.throwIfAborted();
    const until = await endOfSlice(select, range, after, EXPORT_LIMITS.sliceRows);
    const rows = selectSlice(range, after, until);
    const receipt = await receiptOfSlice(select, rows);
    const format = spec.written[slice === 0 ? 0 : 1];
    const typed = { ...rows, query: `SELECT ${TYPED_COLUMNS} ${rows.query}` };
    // The first slice has the header, even if it is empty.
    if (receipt.count > 0 || slice === 0) {
      const encoding = spec.encoding === undefined ? {} : { encoding: spec.encoding };
      await append(parts.add(await readBytes(typed, format, { ...encoding, signal })));
    }
    sum = joinReceipts(sum, receipt);
    if (!(await onSlice({ rows: sum.count, bytes }))) return undefined;
    if (until === undefined) break;
    after = until;
  }
  await append(parts.end());
  const { epoch } = parsePosition(position)!;
  return { bytes, sha256: hash.digest('hex'), receipt: receiptOf(sum, epoch) };
}
