import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigError } from '../../lib/config/config.ts';
import { formatPeppers, isSigned, parsePeppers, readPepper } from './pepper.ts';

const PAST = '2026-01-01T00:00:00.000Z';
const FUTURE = '2999-01-01T00:00:00.000Z';
const hex = (byte: number, length = 32) => Buffer.alloc(length, byte).toString('hex');

test('one line of hex is version 1, as before there were versions', () => {
  const versions = parsePeppers(`${hex(7)}\n`, 'f');
  expect(versions).toEqual([{ version: 1, activeFromMs: 0, bytes: Buffer.alloc(32, 7) }]);
  expect(parsePeppers(formatPeppers(versions), 'f')).toEqual(versions);
});

test('several versions are read newest first, in any order of lines', () => {
  const text = `1 ${PAST} ${hex(1)}\n3 ${FUTURE} ${hex(3)}\n2 ${PAST} ${hex(2)}\n`;
  expect(parsePeppers(text, 'f').map(({ version }) => version)).toEqual([3, 2, 1]);
});

test.each([
  ['empty', ''],
  ['no hex', 'secret'],
  ['31 bytes', hex(1, 31)],
  ['31 bytes in a version', `1 ${PAST} ${hex(1, 31)}`],
  ['a second line without a version', `${hex(1)}\n${hex(2)}`],
  ['no time', `1 ${hex(1)}`],
  ['no such time', `1 soon ${hex(1)}`],
  ['version 0', `0 ${PAST} ${hex(1)}`],
  ['version 256', `256 ${PAST} ${hex(1)}`],
  ['a version twice', `1 ${PAST} ${hex(1)}\n1 ${PAST} ${hex(2)}`],
  ['no active version', `1 ${FUTURE} ${hex(1)}`],
  ['nine versions', [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `${n} ${PAST} ${hex(n)}`).join('\n')],
])('refused: %s', (_, text) => {
  const parse = () => parsePeppers(text, 'the-file');
  expect(parse).toThrow(ConfigError);
  expect(parse).toThrow(/the-file/);
  expect(parse).not.toThrow(new RegExp(hex(1)));
});

describe('the file is followed', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-peppers-'));
    file = path.join(folder, 'pepper');
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true });
  });

  test('a new version is accepted at once and used from its time on', () => {
    writeFileSync(file, hex(1));
    const pepper = readPepper(file);
    const from = new Date(Date.now() + 60_000).toISOString();
    writeFileSync(file, `1 ${PAST} ${hex(1)}\n2 ${from} ${hex(2)}\n`);
    vi.advanceTimersByTime(1_000);
    expect(pepper.all().map(({ version }) => version)).toEqual([2, 1]);
    expect(pepper.current().version).toBe(1);
    const signed = (bytes: Buffer) => bytes;
    expect(isSigned(pepper, Buffer.alloc(32, 2), signed)).toBe(true);
    expect(isSigned(pepper, Buffer.alloc(32, 3), signed)).toBe(false);
    vi.advanceTimersByTime(60_000);
    expect(pepper.current().version).toBe(2);
  });

  test('a file that became wrong or is gone changes nothing', () => {
    writeFileSync(file, hex(1));
    const pepper = readPepper(file);
    for (const spoil of [() => writeFileSync(file, 'x'), () => rmSync(file)]) {
      spoil();
      vi.advanceTimersByTime(1_000);
      expect(pepper.current().bytes).toEqual(Buffer.alloc(32, 1));
    }
    writeFileSync(file, `2 ${PAST} ${hex(2)}\n`);
    vi.advanceTimersByTime(1_000);
    expect(pepper.all().map(({ version }) => version)).toEqual([2]);
  });
});
