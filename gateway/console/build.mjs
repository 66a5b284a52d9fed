// Builds the page into dist/console, unless what is there was made of the same: every npm script
// builds first, and most of them need no other page. Plain JavaScript: it runs before the compiler.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');
const target = path.join(root, 'dist/console');
// The client library is a part of the page; the lock file names what is brought along.
const made = fingerprint([
  ...filesIn('gateway/console/page'),
  ...filesIn('sdk').filter((file) => path.dirname(file) === 'sdk'),
  'gateway/console/vite.config.ts',
  'package-lock.json',
]);

if (made !== madeOf(target)) {
  // Beside, and put in place when it is whole: an API may be serving the one before.
  const beside = `${target}.${process.pid}`;
  try {
    const { build } = await import('vite'); // half a second that most runs do not need
    const configFile = path.join(root, 'gateway/console/vite.config.ts');
    await build({ configFile, build: { outDir: beside } });
    writeFileSync(path.join(beside, 'made-of'), made);
    rmSync(target, { recursive: true, force: true });
    renameSync(beside, target);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

function filesIn(folder) {
  const entries = readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => path.relative(root, path.join(parentPath, name)));
}

function fingerprint(files) {
  const hash = createHash('sha256');
  for (const file of files.sort()) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(root, file)))
      .update('\0');
  }
  return hash.digest('hex');
}

function madeOf(folder) {
  const file = path.join(folder, 'made-of');
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
