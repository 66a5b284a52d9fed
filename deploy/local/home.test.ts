import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { settleHome } from './home.ts';
import { placeAt } from './place.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'pillole-home-'));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

function running(folder: string) {
  const place = placeAt(path.join(root, folder));
  settleHome(place);
  mkdirSync(place.run, { recursive: true });
  for (const file of [place.lock, place.stack, path.join(place.run, 'kafka.json')]) {
    writeFileSync(file, '{}');
  }
  return place;
}

test('a folder keeps its own lock and pids', () => {
  const place = running('one');
  settleHome(place);
  expect(existsSync(place.lock)).toBe(true);
  expect(existsSync(path.join(place.run, 'kafka.json'))).toBe(true);
});

test('a copy of the folder of a running stack knows nothing of its processes', () => {
  const original = running('one');
  const copy = placeAt(path.join(root, 'two'));
  cpSync(original.folder, copy.folder, { recursive: true });
  settleHome(copy);
  for (const one of [copy.lock, copy.stack, copy.run]) expect(existsSync(one)).toBe(false);
  expect(existsSync(original.lock)).toBe(true);
});
