import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { type EngineName, readLauncherConfig } from '../deploy/local/config.ts';
import { startEngines } from '../deploy/local/engines.ts';
import { ensurePasswords } from '../deploy/local/passwords.ts';
import { stackLayout } from '../deploy/local/stack-layout.ts';
import { QUICK_JAVA } from './quick-java.ts';
import { findTestFiles } from './test-files.ts';

/**
 * Global set-up of the tests that use engines: starts the engines of the selected files once for the
 * whole run, in a temporary folder, and stops them at the end. Engines that the environment names are
 * used as they are.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-test-'));
  const names = await enginesOfSelectedFiles(project);
  process.env.JAVA_TOOL_OPTIONS ??= QUICK_JAVA;
  const layout = stackLayout(folder);
  const engines = await startEngines({
    layout,
    config: readLauncherConfig(),
    names,
    preferredPorts: { kafka: 0, controller: 0, registry: 0, clickhouse: 0, postgres: 0 },
    // A kill of the server loses nothing by this. Each commit otherwise waits for a disk that four
    // workers share, beyond the time-outs of the processes under test.
    isTemporary: true,
    report: (line) => process.stderr.write(`[engines] ${line}\n`),
  });
  const pepperFile = path.join(folder, 'pepper');
  await writeFile(pepperFile, randomBytes(32).toString('hex'), { mode: 0o600 });
  const addresses: Record<EngineName, string> = {
    kafka: engines.kafkaBrokers,
    registry: engines.registryUrl,
    clickhouse: engines.clickhouseUrl,
    postgres: engines.postgresUrl,
  };
  project.provide('engines', Object.fromEntries(names.map((name) => [name, addresses[name]])));
  project.provide('postgresUrls', engines.postgresUrls);
  project.provide('passwords', ensurePasswords(layout.passwords));
  project.provide('pepperFile', pepperFile);
  return async () => {
    await engines.stop();
    const denied = readDenials(path.join(layout.logs, 'postgres.log'));
    await rm(folder, { recursive: true, force: true });
    if (denied.length > 0) {
      throw new Error(`Processes lack rights in PostgreSQL (grants.sql):\n${denied.join('\n')}`);
    }
  };
}

/** Refusals to processes of the platform: most of them retry, and no test would fail. */
function readDenials(log: string): string[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, 'utf8').split('\n');
  const denial = /\] (\S+ pillole-\S+) ERROR: +(permission denied.*|must be owner.*)/;
  const denials = lines.map((line) => denial.exec(line)?.slice(1).join(': ') ?? '');
  return [...new Set(denials)].filter(Boolean);
}
async function enginesOfSelectedFiles(project: TestProject): Promise<EngineName[]> {
  // The filters of the command line, which vitest does not publish; without them all files count.
  const { filenamePattern } = project.vitest as { readonly filenamePattern?: string[] };
  const filters = filenamePattern?.map((filter) => filter.replace(/:\d+$/, ''));
  const { testFiles } = await project.globTestFiles(filters);
  const selected = new Set(testFiles);
  const { root } = project.config;
  const used = findTestFiles(root).filter(({ file }) => selected.has(path.join(root, file)));
  return [...new Set(used.flatMap(({ engines }) => engines))];
}
