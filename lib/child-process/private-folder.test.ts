import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { requirePrivateFolder } from './private-folder.ts';

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(path.join(os.tmpdir(), 'pillole private-'));
  folder = path.join(base, 'run');
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

const require = () => requirePrivateFolder(folder, 'Or set RUN_FOLDER.');

test('a missing folder is created for this user alone, and accepted afterwards', () => {
  require();
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  require();
});

test.each([0o755, 0o770, 0o777])('a folder with the mode %o is refused', (mode) => {
  mkdirSync(folder);
  chmodSync(folder, mode);
  expect(require).toThrow(`${folder} has the mode 0${mode.toString(8)} and must have 0700.`);
  expect(require).toThrow('Remove it if it is yours. Or set RUN_FOLDER.');
});

test('a link is refused, wherever it leads', () => {
  mkdirSync(path.join(base, 'else'), { mode: 0o700 });
  symlinkSync(path.join(base, 'else'), folder);
  expect(require).toThrow('is a link, not a folder');
});

// Only root can change a folder's owner.
test.runIf(process.getuid?.() === 0)('a folder of another user is refused', () => {
  mkdirSync(folder, { mode: 0o700 });
  chownSync(folder, 4_711, 4_711);
  expect(require).toThrow('belongs to user 4711, not to 0');
});
