import { readFileSync } from 'node:fs';
import path from 'node:path';
import { defaultStackFile } from '../../lib/config/stack-file.ts';
import type { Tier } from '../access/tiers.ts';

/**
 * Reads the keys of a stack's demo accounts from `demo-keys.json` beside the stack file.
 * @throws an error of one sentence if the stack has none
 */
export function readDemoKeys(stackFile: string = defaultStackFile): Readonly<Record<Tier, string>> {
  const file = path.join(path.dirname(stackFile), 'demo-keys.json');
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<Tier, string>>;
  } catch (error) {
    throw new Error(
      `${file} cannot be read (${(error as Error).message}): run "npm start", or set a key in ` +
        'PILLOLE_API_KEY.',
    );
  }
}
