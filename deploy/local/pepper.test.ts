import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readPepper } from '../../lib/access/pepper.ts';
import { ensurePepper } from './pepper.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-pepper-'));
  file = path.join(folder, 'pepper');
});

afterEach(() => rmSync(folder, { recursive: true }));

test('a pepper is made once, for its owner alone, and nothing is left beside it', () => {
  ensurePepper(file);
  const first = readPepper(file);
  ensurePepper(file);
  expect(readPepper(file)).toEqual(first);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['pepper']);
});

test('a pepper that is damaged is never replaced: it may be mended', () => {
  writeFileSync(file, 'half');
  ensurePepper(file);
  expect(() => readPepper(file)).toThrow('must hold at least 32 bytes');
});
