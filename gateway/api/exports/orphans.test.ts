import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NAMES_BATCH, removeOrphans } from './orphans.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-orphans-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const none = async () => new Set<string>();

async function addOld(name: string): Promise<void> {
  await writeFile(path.join(folder, name), '');
  await utimes(path.join(folder, name), 1, 1);
}

test('old files without a row go; named ones and young ones stay, whatever their number', async () => {
  const names = Array.from({ length: 2 * NAMES_BATCH + 1 }, (_, n) => `exp_${n}`);
  for (const name of names) await addOld(name);
  await writeFile(path.join(folder, 'young.part'), '');
  const batches: number[] = [];
  const isNamed = (name: string) => name.endsWith('7');
  await removeOrphans(folder, async (batch) => {
    batches.push(batch.length);
    return new Set(batch.filter(isNamed));
  });
  expect((await readdir(folder)).sort()).toEqual([...names.filter(isNamed), 'young.part'].sort());
  // A statement has 65,535 parameters at most.
  expect(batches).toEqual([NAMES_BATCH, NAMES_BATCH, 2]);
});

test('a folder that is not there has no files', async () => {
  await expect(removeOrphans(path.join(folder, 'absent'), none)).resolves.toBeUndefined();
});

test('a folder or a file that cannot be read is an error', async () => {
  await addOld('file');
  await expect(removeOrphans(path.join(folder, 'file'), none)).rejects.toThrow('ENOTDIR');
  await mkdir(path.join(folder, 'directory'));
  await utimes(path.join(folder, 'directory'), 1, 1);
  // Nothing of ours makes a folder there: deleting it needs a human.
  await expect(removeOrphans(folder, none)).rejects.toThrow('directory');
});
