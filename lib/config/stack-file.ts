import { readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../files/package-root.ts';

/**
 * Addresses of a running stack: `.local/stack.json`, which `npm start` writes for programs. Those of
 * engines hold passwords; only the user who started the stack can read the file.
 */
export interface StackFile {
  readonly ingest: string;
  readonly api: string;
  readonly stream: string;
  readonly kafka: string;
  readonly registry: string;
  readonly clickhouse: string;
  readonly postgres: string;
  /** Processes that are down at the moment are not listed. */
  readonly processes: Readonly<Record<string, { readonly pid: number; readonly metrics: string }>>;
}

/** Path of the file that `npm start` writes in this folder. */
export const defaultStackFile: string = path.join(packageRoot, '.local', 'stack.json');

/** @throws with one sentence that says what to do, when the file is missing or damaged. */
export function readStackFile(file: string = defaultStackFile): StackFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    throw new Error(
      `No running stack: ${file} does not exist. Run "npm start", or pass the addresses as flags.`,
    );
  }
  try {
    return JSON.parse(text) as StackFile;
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`);
  }
}
