import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../lib/files/package-root.ts';

const LOCK = path.join(packageRoot, 'package-lock.json');
const JARS = path.join(packageRoot, 'deploy', 'local', 'jars.json');
interface Lock {
  readonly packages: Record<
    string,
    { name?: string; license?: string; version?: string; dev?: boolean }
  >;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-licenses-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const readLock = () => JSON.parse(readFileSync(LOCK, 'utf8')) as Lock;

/** Checks the lock file with one package more. */
function checkWith(name: string, entry: Lock['packages'][string]) {
  const lock = readLock();
  lock.packages[`node_modules/${name}`] = { version: '1.0.0', ...entry };
  const file = path.join(folder, 'lock.json');
  writeFileSync(file, JSON.stringify(lock));
  const script = path.join(packageRoot, 'deploy/license-check.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' });
  return { status, fault: stderr.split(':')[0] };
}

test.each([
  ['one that is allowed', { license: 'MIT' }, 0, ''],
  ['another', { license: 'AGPL-3.0-only' }, 1, 'planted 1.0.0 has the license AGPL-3.0-only'],
  ['none', {}, 1, 'planted 1.0.0 states no license'],
  ['that of a tool', { license: 'MPL-2.0', dev: true }, 0, ''],
  [
    'that of a tool, in a process',
    { license: 'MPL-2.0' },
    1,
    'planted 1.0.0 has the license MPL-2.0',
  ],
])('a package with the license: %s', (_, entry, status, fault) => {
  expect(checkWith('planted', entry)).toEqual({ status, fault });
});

test('npm run sbom lists every package and every jar with its version', () => {
  const { stdout } = spawnSync('npm', ['run', '--silent', 'sbom'], {
    ...{ cwd: packageRoot, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  });
  const bom = JSON.parse(stdout) as {
    readonly bomFormat: string;
    readonly components: readonly { readonly purl: string }[];
  };
  expect(bom.bomFormat).toBe('CycloneDX');
  const listed = new Set(bom.components.map(({ purl }) => decodeURIComponent(purl)));
  const { '': _, ...packages } = readLock().packages;
  const missing = Object.entries(packages)
    .map(([place, { name, version }]) => {
      return `pkg:npm/${name ?? place.split('node_modules/').at(-1)}@${version}`;
    })
    .filter((purl) => !listed.has(purl));
  expect(missing).toEqual([]);
  const jars = JSON.parse(readFileSync(JARS, 'utf8')) as Record<
    string,
    readonly { readonly purl: string; readonly sha256: string }[]
  >;
  const pinned = Object.values(jars).flat();
  expect(pinned.length).toBeGreaterThan(90);
  expect(bom.components).toEqual(
    expect.arrayContaining(
      pinned.map(({ purl, sha256 }) =>
        expect.objectContaining({ purl, hashes: [{ alg: 'SHA-256', content: sha256 }] }),
      ),
    ),
  );
  const kafka = bom.components.find(({ purl }) => purl.includes('kafka_2.13@'));
  expect(kafka).toMatchObject({ hashes: [{ alg: 'SHA-256' }], group: 'org.apache.kafka' });
});
