import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root folder of the project: the nearest one above this file whose package.json names pillole. */
export const packageRoot: string = findRoot(path.dirname(fileURLToPath(import.meta.url)));

/** Version of the running code, from package.json. */
export const packageVersion: string = readPackage(packageRoot).version;

function findRoot(folder: string): string {
  if (existsSync(path.join(folder, 'package.json')) && readPackage(folder).name === 'pillole') {
    return folder;
  }
  const parent = path.dirname(folder);
  if (parent === folder) throw new Error('No package.json of pillole found above this file.');
  return findRoot(parent);
}

function readPackage(folder: string): { name: string; version: string } {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
}
