import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Tier } from '../access/tiers.ts';
import { readDemoKeys } from '../demo-keys.ts';
import { packageRoot } from '../root.ts';
import { readStackFile, type StackFile } from '../stack-file.ts';
import { GiveUp, waitFor } from './wait.ts';

export { isAlive } from '../child-process/identity.ts';

/** A whole stack, started as `npm start` starts it, in a folder of its own. */
export interface Stack {
  readonly folder: string;
  readonly launcher: ChildProcess;
  readonly exited: Promise<number | string>;
  addresses(): StackFile;
  /** Keys of the demo accounts. */
  demoKeys(): Readonly<Record<Tier, string>>;
  /** Pid of a process or an engine (kafka, registry, clickhouse, postgres) that lives now. */
  pidOf(name: string): number;
  /** Pids of everything that the launcher has started. */
  pids(): Record<string, number>;
  output(): string;
  /** SIGINT, as Ctrl-C; @returns the launcher's exit code. */
  stop(): Promise<number | string>;
}

/** A folder for one or several lives of a stack. */
export async function makeStackFolder(): Promise<string> {
  return mkdtemp(path.join(os.tmpdir(), 'pillole e2e-'));
}

/** Removes the folder of a stack that has stopped. */
export async function removeStackFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Starts the launcher, without the demo market unless told, and waits until everything runs. */
export async function launchStack(
  folder: string,
  args: readonly string[] = ['--no-demo'],
): Promise<Stack> {
  const env = { ...process.env };
  // The launcher must bring up engines of its own, whatever this run uses.
  for (const name of ['KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'CLICKHOUSE_URL', 'DATABASE_URL']) {
    delete env[name];
  }
  const launcher = spawn(
    process.execPath,
    [
      '--enable-source-maps',
      path.join(packageRoot, 'dist/deploy/local/main.js'),
      ...['--data', folder, ...args],
    ],
    { cwd: packageRoot, env, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-200_000);
  };
  launcher.stdout.on('data', collect);
  launcher.stderr.on('data', collect);
  let ended: number | string | undefined;
  const exited = new Promise<number | string>((resolve) => {
    launcher.once('exit', (code, signal) => {
      ended = code ?? signal ?? 'gone';
      resolve(ended);
    });
  });
  const file = path.join(folder, 'stack.json');
  const addresses = () => readStackFile(file);
  const pids = () => {
    const run = path.join(folder, 'run');
    const files = readdirSync(run).filter((name) => name.endsWith('.json'));
    return Object.fromEntries(
      files.map((name) => {
        const { pid } = JSON.parse(readFileSync(path.join(run, name), 'utf8')) as { pid: number };
        return [name.slice(0, -'.json'.length), pid];
      }),
    );
  };
  await waitFor(
    'the stack to run',
    () => {
      if (ended !== undefined) throw new GiveUp(`The launcher ended (${ended}):\n${output}`);
      return (existsSync(file) && output.includes('pillole runs')) || output.slice(-500);
    },
    120_000,
  );
  return {
    folder,
    launcher,
    exited,
    addresses,
    demoKeys: () => readDemoKeys(file),
    pids,
    pidOf(name) {
      const pid = pids()[name];
      if (pid === undefined) throw new Error(`${name} does not run`);
      return pid;
    },
    output: () => output,
    stop() {
      launcher.kill('SIGINT');
      return exited;
    },
  };
}
