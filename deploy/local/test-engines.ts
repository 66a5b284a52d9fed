import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { readLauncherConfig } from './config.ts';
import { startEngines } from './engines.ts';
import { placeAt } from './place.ts';

/**
 * vitest's global set-up: starts the four engines once for the whole run, in a folder of its own,
 * and stops them at the end. Engines named in the environment are used as they are.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-test-'));
  const engines = await startEngines({
    place: placeAt(folder),
    config: readLauncherConfig(),
    wantedPorts: { kafka: 0, controller: 0, registry: 0, clickhouse: 0, postgres: 0 },
    say: (line) => process.stderr.write(`[engines] ${line}\n`),
  });
  const pepperFile = path.join(folder, 'pepper');
  await writeFile(pepperFile, randomBytes(32).toString('hex'), { mode: 0o600 });
  project.provide('engines', {
    kafkaBrokers: engines.kafkaBrokers,
    registryUrl: engines.registryUrl,
    clickhouseUrl: engines.clickhouseUrl,
    postgresUrl: engines.postgresUrl,
    pepperFile,
  });
  return async () => {
    await engines.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
