import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { downloadJars } from './kafka.ts';
import type { StackLayout } from './stack-layout.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-jars-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Puts a program first in the path that writes one file, or none, in place of Maven's downloads. */
function downloadsAre(file: string | undefined): void {
  const bin = path.join(folder, 'bin');
  mkdirSync(bin);
  const mvn = path.join(bin, 'mvn');
  const write = file === undefined ? ':' : `printf altered > "\${a#*=}/${file}"`;
  writeFileSync(
    mvn,
    `#!/bin/sh\nfor a; do case $a in -DoutputDirectory=*) ${write};; esac; done\n`,
  );
  chmodSync(mvn, 0o755);
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
}

test.each([
  ['an altered jar', 'kafka_2.13-4.3.1.jar', 'kafka_2.13-4.3.1.jar has the SHA-256 '],
  ['an unknown jar', 'planted-1.0.jar', 'planted-1.0.jar is not in jars.json'],
  ['a jar missing', undefined, 'HdrHistogram-2.2.2.jar is missing'],
])('a download with %s ends the start, and nothing of it stays', async (_, file, fault) => {
  downloadsAre(file);
  const engines = path.join(folder, 'engines');
  const layout = { engines } as StackLayout;
  const signal = AbortSignal.timeout(60_000);
  const started = downloadJars({ layout, report: () => undefined, signal });
  await expect(started).rejects.toMatchObject({
    name: 'SetupError',
    message: expect.stringContaining(fault),
  });
  expect(readdirSync(engines)).toEqual([]);
});
