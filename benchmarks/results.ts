import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../lib/root.ts';

/** Where results are kept unless said otherwise; git ignores all but a baseline. */
export const resultsFolder: string = path.join(packageRoot, 'benchmarks', 'results');

/** Writes a result as `<benchmark>-<time>.json`. @returns the file's path. */
export function writeResult(
  folder: string,
  result: { readonly benchmark: string; readonly at: string },
): string {
  mkdirSync(folder, { recursive: true });
  const time = result.at.replaceAll(/[-:]/g, '').slice(0, 15);
  const file = path.join(folder, `${result.benchmark}-${time}.json`);
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
  return file;
}
