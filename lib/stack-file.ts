import { readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from './root.ts';

/** Where a running stack is: `.local/stack.json`, as `npm start` writes it for programs. */
export interface StackFile {
  readonly ingest: string;
  readonly api: string;
  readonly stream: string;
  readonly kafka: string;
  readonly registry: string;
  readonly clickhouse: string;
  readonly postgres: string;
  /** A process that is down at this moment is not listed. */
  readonly processes: Readonly<Record<string, { readonly pid: number; readonly metrics: string }>>;
}

/** Where `npm start` in this folder tells its addresses. */
export const defaultStackFile: string = path.join(packageRoot, '.local', 'stack.json');

/** @throws with one sentence that says what to do, when there is no such file or it is damaged. */
export function readStackFile(file: string = defaultStackFile): StackFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    throw new Error(
      `No running stack: ${file} is not there. Run "npm start", or give the addresses by flags.`,
    );
  }
  try {
    return JSON.parse(text) as StackFile;
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`);
  }
}
