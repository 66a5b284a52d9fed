import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStackFolder } from './stack-folder.ts';
import { stackLayout } from './stack-layout.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'pillole-home-'));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function runningStack(folder: string) {
  const layout = stackLayout(path.join(root, folder));
  openStackFolder(layout);
  mkdirSync(layout.run, { recursive: true });
  for (const file of [layout.lock, layout.stack, path.join(layout.run, 'kafka.json')]) {
    writeFileSync(file, '{}');
  }
  return layout;
}

test('a folder keeps its own lock and pids', () => {
  const layout = runningStack('one');
  openStackFolder(layout);
  expect(existsSync(layout.lock)).toBe(true);
  expect(existsSync(path.join(layout.run, 'kafka.json'))).toBe(true);
});

test('a copy of a running stack’s folder keeps no lock, address or pid of the original', () => {
  const original = runningStack('one');
  const copy = stackLayout(path.join(root, 'two'));
  cpSync(original.folder, copy.folder, { recursive: true });
  openStackFolder(copy);
  for (const copied of [copy.lock, copy.stack, path.join(copy.run, 'kafka.json')]) {
    expect(existsSync(copied)).toBe(false);
  }
  expect(existsSync(original.lock)).toBe(true);
});

const modeOf = (file: string) => statSync(file).mode & 0o777;

test('a folder that others could read is closed, as are its folders and files', () => {
  const layout = runningStack('one');
  const folders = [layout.folder, layout.data(''), layout.run, layout.logs, layout.outbox];
  mkdirSync(layout.outbox);
  writeFileSync(layout.ports, '{}');
  for (const open of [...folders, layout.ports]) chmodSync(open, 0o755);
  openStackFolder(layout);
  expect(folders.map(modeOf)).toEqual(folders.map(() => 0o700));
  expect(modeOf(layout.ports)).toBe(0o600);
  expect(modeOf(path.join(layout.folder, 'home'))).toBe(0o600);
});

test('a folder with other files is refused, and keeps its mode', () => {
  const folder = path.join(root, 'shared');
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  writeFileSync(path.join(folder, 'letter.txt'), '');
  expect(() => openStackFolder(stackLayout(folder))).toThrow('name an empty folder with --data');
  expect(modeOf(folder)).toBe(0o755);
});
