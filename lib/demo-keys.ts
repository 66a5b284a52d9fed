import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Tier } from './access/tiers.ts';
import { defaultStackFile } from './stack-file.ts';

/**
 * Keys of the demo accounts of a stack, from `demo-keys.json` beside its file.
 * @throws with one sentence, when the stack has none
 */
export function readDemoKeys(stackFile: string = defaultStackFile): Readonly<Record<Tier, string>> {
  const file = path.join(path.dirname(stackFile), 'demo-keys.json');
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<Tier, string>>;
  } catch (error) {
    throw new Error(
      `${file} cannot be read (${(error as Error).message}): run "npm start", or name a key in ` +
        'PILLOLE_API_KEY.',
    );
  }
}
