import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';

const MAIN = path.join(packageRoot, 'dist/deploy/local/main.js');

test.each([
  ['--no-demo --seed 7', "error: option '--seed <n>' cannot be used with option '--no-demo'\n"],
  ['--pills-per-s 5 --no-demo', /^error: .*'--pills-per-s <n>' .*'--no-demo'\n$/],
  ['--no-demo --direct', /^error: .*'--direct' .*'--no-demo'\n$/],
  ['--sed 7', /^error: unknown option '--sed'/],
  ['--seed seven', /^error: .*'--seed <n>'/],
])('%s: one sentence, and the exit code of wrong usage', async (words, sentence) => {
  const refused = promisify(execFile)(process.execPath, [MAIN, ...words.split(' ')]);
  await expect(refused).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(sentence) });
});
