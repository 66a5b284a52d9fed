import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../lib/files/package-root.ts';
import { type ApiAccess, call, type ExportInfo, readExport } from './ways.ts';

const PYTHON = path.join(packageRoot, 'sdk/python');
export const REQUIREMENTS = path.join(PYTHON, 'requirements.txt');
const RANGE_BYTES = 67_108_864;

/**
 * Downloads the file of an export by ranges, with a new link for each.
 * @throws if its length or its SHA-256 is another
 */
export async function downloadExport(api: ApiAccess, { id, file }: ExportInfo, folder: string) {
  const { bytes, sha256 } = file!;
  const target = path.join(folder, 'export');
  const startedAt = performance.now();
  const hash = createHash('sha256');
  const output = await open(target, 'w');
  let ranges = 0;
  try {
    for (let at = 0; at < bytes; at += RANGE_BYTES) {
      const link = (await readExport(api, id)).file!.url;
      const last = Math.min(at + RANGE_BYTES, bytes) - 1;
      const { headers, body } = await call(api, 'GET', link, { range: `bytes=${at}-${last}` });
      const expected = `bytes ${at}-${last}/${bytes}`;
      if (headers['content-range'] !== expected || body.length !== last - at + 1) {
        throw new Error(`The range ${expected} came as ${headers['content-range']}.`);
      }
      hash.update(body);
      await output.writeFile(body);
      ranges += 1;
    }
  } finally {
    await output.close();
  }
  if (hash.digest('hex') !== sha256) throw new Error('The file of the export has another SHA-256.');
  const downloadS = (performance.now() - startedAt) / 1_000;
  return { path: target, remove: () => rm(target), figures: { bytes, ranges, downloadS } };
}

/**
 * Checks count and digest of the receipt by the Python client, in a process of its own.
 * @throws if they differ
 */
export async function verifyExport(
  python: string,
  file: string,
  format: string,
  { file: made }: ExportInfo,
) {
  const script = path.join(PYTHON, 'benchmarks/verify_export.py');
  const args = [script, file, format, JSON.stringify(made!.receipt)];
  const { stdout } = await promisify(execFile)(python, args);
  return JSON.parse(stdout) as { readonly seconds: number; readonly maxRssMib: number };
}
