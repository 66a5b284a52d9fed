import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');

/** Every file below a folder, relative to the root of the project. */
export function filesIn(folder) {
  const entries = readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => path.relative(root, path.join(parentPath, name)));
}

/** Fingerprint of the names and contents of files: a build with an equal one is up to date. */
export function fingerprint(files) {
  const hash = createHash('sha256');
  for (const file of [...files].sort()) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(root, file)))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Fingerprint that the build in a folder was made of; undefined if there is no build. */
export function madeOf(folder) {
  const file = path.join(folder, 'made-of');
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
