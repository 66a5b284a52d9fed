import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { makePython } from '../../../testing/python.ts';
import { VENUES } from './venue.ts';

const run = promisify(execFile);
const here = path.join(packageRoot, 'domain/market/calendars');
const made = await makePython(path.join(here, 'requirements.txt'));
const reason = 'reason' in made ? ` (skipped, python3 -m venv or pip failed: ${made.reason})` : '';

test('every venue has a small file, and every file has a venue', async () => {
  const names = await readdir(path.join(here, 'data'));
  expect(names.sort()).toEqual(VENUES.map((venue) => `${venue}.json`));
  for (const name of names) {
    expect((await readFile(path.join(here, 'data', name))).length).toBeLessThan(40_000);
  }
});

describe.skipIf('reason' in made && process.env.CI === undefined)(`generate.py${reason}`, () => {
  test('reproduces the vendored files byte for byte', async () => {
    if ('reason' in made) throw new Error(`exchange_calendars is not installed: ${made.reason}`);
    const folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-calendars-'));
    try {
      await run(made.python, [path.join(here, 'generate.py'), folder], { timeout: 240_000 });
      for (const venue of VENUES) {
        const [again, vendored] = await Promise.all(
          [folder, path.join(here, 'data')].map((place) =>
            readFile(path.join(place, `${venue}.json`), 'utf8'),
          ),
        );
        expect(again, venue).toBe(vendored);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 300_000);
});
