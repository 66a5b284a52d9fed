import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../../lib/log/log.ts';
import { openOverridesFile } from './overrides-file.ts';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-overrides-'));
  file = path.join(folder, 'days.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

const TYPHOON = { XHKG: { '2026-09-21': 'closed' } };
const write = (value: unknown) => writeFileSync(file, JSON.stringify(value));

test('is read at the start and after each change; a faulty or missing file changes nothing', () => {
  write({});
  const opened = openOverridesFile(file, silentLog);
  expect(opened.refresh()).toBeUndefined();
  write(TYPHOON);
  expect(opened.refresh()).toEqual(TYPHOON);
  expect(opened.refresh()).toBeUndefined();
  writeFileSync(file, '{"XHKG": {"2026-09-21": ');
  expect(opened.refresh()).toBeUndefined();
  expect(opened.overrides).toEqual(TYPHOON);
  rmSync(file);
  expect(opened.refresh()).toBeUndefined();
  expect(opened.overrides).toEqual(TYPHOON);
  write({ XTKS: {} });
  expect(opened.refresh()).toEqual({ XTKS: {} });
});

test.each([
  ['absent', () => undefined, /^CALENDAR_OVERRIDES \S+ cannot be read: ENOENT/],
  [
    'too large',
    () => writeFileSync(file, ' '.repeat(1_048_577)),
    /cannot be read: is over 1048576/,
  ],
  ['faulty', () => write({ XNYS: {} }), /is faulty: XNYS: unknown venue/],
])('a %s file prevents the start, with a message', (_, make, sentence) => {
  make();
  expect(() => openOverridesFile(file, silentLog)).toThrow(sentence);
});
