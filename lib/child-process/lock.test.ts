import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { identityOf } from './identity.ts';
import { takeLock } from './lock.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole lock-'));
  file = path.join(folder, 'lock');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a lock has one holder, and is free again after its release', () => {
  const first = takeLock(file);
  expect(takeLock(file)).toMatchObject({ ok: false, owner: { pid: process.pid } });
  if (first.ok) first.lock.release();
  expect(existsSync(file)).toBe(false);
  expect(takeLock(file).ok).toBe(true);
});

test('of many concurrent attempts, one succeeds', () => {
  const results = Array.from({ length: 20 }, () => takeLock(file).ok);
  expect(results.filter(Boolean)).toHaveLength(1);
});

test.each([
  ['nothing', ''],
  ['half a file', '{"pid":12'],
  ['a dead owner', '{"pid":999999999,"startTime":"x"}'],
])('a lock with %s is taken over', (_, content) => {
  writeFileSync(file, content);
  expect(takeLock(file).ok).toBe(true);
});

test('a lock whose owner’s pid was reused is taken over', async () => {
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)']);
  await once(other, 'spawn');
  writeFileSync(file, JSON.stringify({ pid: other.pid, startTime: 'earlier' }));
  expect(takeLock(file).ok).toBe(true);
  writeFileSync(file, JSON.stringify(identityOf(other.pid ?? 0)));
  expect(takeLock(file).ok).toBe(false);
  other.kill('SIGKILL');
  await once(other, 'exit');
  expect(takeLock(file).ok).toBe(true);
});
