// Holds documents and code equal: invariants name tests that exist, the README's folder map names
// folders that exist, no file holds a download address.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const read = (file) => readFileSync(path.join(root, file), 'utf8');
const faults = [];

const architecture = read('ARCHITECTURE.md');
// A row of an invariant: | 1 | text | `file.test.ts` "name of the test" |
const rows = architecture.split('\n').filter((line) => /^\| \d+ \|/.test(line));
if (rows.length < 7) faults.push('ARCHITECTURE.md: fewer than seven numbered invariants.');
for (const row of rows) {
  const number = row.split('|')[1].trim();
  const named = [...row.matchAll(/`([^`]+\.test\.ts)` "([^"]+)"/g)];
  if (named.length === 0) faults.push(`Invariant ${number} names no test.`);
  for (const [, file, title] of named) {
    if (!existsSync(path.join(root, file))) faults.push(`Invariant ${number}: no file ${file}.`);
    else if (!read(file).includes(title)) {
      faults.push(`Invariant ${number}: ${file} has no test "${title}".`);
    }
  }
}
for (const document of ['README.md', 'ARCHITECTURE.md']) {
  for (const [, link] of read(document).matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
    if (!existsSync(path.join(root, link))) faults.push(`${document}: ${link} does not exist.`);
  }
}
const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
const { scripts } = JSON.parse(read('package.json'));
for (const [, script] of read('README.md').matchAll(/npm run ([a-z:-]+)/g)) {
  if (scripts[script] === undefined) faults.push(`README.md: there is no npm run ${script}.`);
}
for (const file of files.filter((name) => /\.(ts|mjs|cjs|json|md|sh)$/.test(name))) {
  if (!existsSync(path.join(root, file))) continue;
  if (/"resolved": *"https?:/.test(read(file))) faults.push(`${file} holds a download address.`);
}
if (faults.length > 0) {
  process.stderr.write(`${faults.join('\n')}\n`);
  process.exit(1);
}
