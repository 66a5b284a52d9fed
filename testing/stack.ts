import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Tier } from '../domain/access/tiers.ts';
import { readDemoKeys } from '../domain/accounts/demo-key-file.ts';
import { takeLock } from '../lib/child-process/lock.ts';
import { readStackFile, type StackFile } from '../lib/config/stack-file.ts';
import { packageRoot } from '../lib/files/package-root.ts';
import { exitOf } from './process.ts';
import { QUICK_JAVA } from './quick-java.ts';
import { GiveUp, waitFor } from './wait.ts';

export { isAlive } from '../lib/child-process/identity.ts';

/** A launch takes some 15 s alone, and over a minute beside two test runs on two cores. */
const LAUNCH_MS = 240_000;
/** Several tests of two runs may wait for their turn. */
const TURN_MS = 600_000;
/**
 * Lock of all test runs on this machine, held during a launch: an engine gives up its start after a
 * minute, and four launches at once on two cores take longer.
 */
const LAUNCH_LOCK = path.join(os.tmpdir(), `pillole-test-launch-${os.userInfo().uid}.lock`);

/** A whole stack in a folder of its own, started as by `npm start`. */
export interface Stack {
  readonly folder: string;
  readonly launcher: ChildProcess;
  readonly exited: Promise<number | string>;
  addresses(): StackFile;
  /** Keys of the demo accounts. */
  demoKeys(): Readonly<Record<Tier, string>>;
  /** Pid of a running process or engine (kafka, registry, clickhouse, postgres). */
  pidOf(name: string): number;
  /** Pids of all processes that the launcher has started. */
  pids(): Record<string, number>;
  output(): string;
  /** Sends SIGINT, like Ctrl-C. @returns the launcher's exit code */
  stop(): Promise<number | string>;
}

/** Creates a folder for one or several starts of a stack. */
export async function makeStackFolder(): Promise<string> {
  return mkdtemp(path.join(os.tmpdir(), 'pillole e2e-'));
}

/** Removes the folder of a stopped stack. */
export async function removeStackFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Starts the launcher, by default without the demo market, and waits until everything runs. */
export async function launchStack(
  folder: string,
  args: readonly string[] = ['--no-demo'],
): Promise<Stack> {
  const turn = await waitFor(
    'the launches of other tests',
    () => {
      const taken = takeLock(LAUNCH_LOCK);
      return taken.ok && taken.lock;
    },
    TURN_MS,
  );
  try {
    return await launch(folder, args);
  } finally {
    turn.release();
  }
}

async function launch(folder: string, args: readonly string[]): Promise<Stack> {
  const env = { ...process.env };
  // The launcher must start engines of its own, whatever engines this run uses.
  for (const name of ['KAFKA_BROKERS', 'SCHEMA_REGISTRY_URL', 'CLICKHOUSE_URL', 'DATABASE_URL']) {
    delete env[name];
  }
  env.JAVA_TOOL_OPTIONS ??= QUICK_JAVA;
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
  const exited = exitOf(launcher);
  void exited.then((code) => {
    ended = code;
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
    LAUNCH_MS,
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
      if (pid === undefined) throw new Error(`${name} is not running`);
      return pid;
    },
    output: () => output,
    stop() {
      launcher.kill('SIGINT');
      return exited;
    },
  };
}
