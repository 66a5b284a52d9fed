// Checks in a copy that `npm ci` accepts the lock file on every platform that it names, and that the
// lock file holds no download address. `npm install` on one platform may drop packages of another
// (the chdb libraries); `npm ci` then fails on that platform.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const lock = readFileSync(path.join(root, 'package-lock.json'), 'utf8');
const { packages } = JSON.parse(lock);
const faults = [];
if (/"resolved": *"https?:/.test(lock)) faults.push('package-lock.json holds download addresses.');
for (const [dependent, { optionalDependencies = {} }] of Object.entries(packages)) {
  if (dependent === '') continue;
  for (const name of Object.keys(optionalDependencies)) {
    const found = packages[`${dependent}/node_modules/${name}`] ?? packages[`node_modules/${name}`];
    if (found === undefined)
      faults.push(`${name}, optional for ${dependent}, is not in the lock file.`);
  }
}
const copy = mkdtempSync(path.join(os.tmpdir(), 'pillole-lock-'));
try {
  for (const file of ['package.json', 'package-lock.json']) {
    copyFileSync(path.join(root, file), path.join(copy, file));
  }
  execFileSync('npm', ['ci', '--dry-run', '--ignore-scripts', '--no-audit'], {
    cwd: copy,
    stdio: 'pipe',
  });
} catch (error) {
  faults.push(`npm ci rejects the lock file:\n${error.stderr ?? error.message}`);
} finally {
  rmSync(copy, { recursive: true, force: true });
}
if (faults.length > 0) {
  process.stderr.write(`${faults.join('\n')}\n`);
  process.exit(1);
}
