import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readPepper } from '../../domain/access/pepper.ts';
import { ensurePepper } from './pepper-file.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-pepper-'));
  file = path.join(folder, 'pepper');
});

afterEach(() => rmSync(folder, { recursive: true }));

test('a pepper is created once, readable by its owner only, and leaves no other file', () => {
  ensurePepper(file);
  const first = readPepper(file).all();
  ensurePepper(file);
  expect(readPepper(file).all()).toEqual(first);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['pepper']);
});

test('a damaged pepper is never replaced, because it may be repaired', () => {
  writeFileSync(file, 'half');
  ensurePepper(file);
  expect(() => readPepper(file)).toThrow('must hold at least 32 bytes');
});
