import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { packageRoot } from '../lib/root.ts';
import { readStackFile, type StackFile } from '../lib/stack-file.ts';

export interface OwnStack {
  readonly stack: StackFile;
  readonly stackFile: string;
  /** Stops the stack by its launcher's pid and removes its data. */
  stop(): Promise<void>;
}

/** The first start on a machine downloads engines. */
const START_MAX_MS = 10 * 60_000;
const STOP_MAX_MS = 15_000;
const PROCESSES = ['ingest', 'latest', 'stream'];

/** Starts a stack of its own, without the demo market, with data in a temporary folder. */
export async function startOwnStack(say: (line: string) => void): Promise<OwnStack> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
  const launcher = spawn(
    process.execPath,
    [path.join(packageRoot, 'dist/deploy/local/main.js'), '--no-demo', '--data', folder],
    { cwd: packageRoot, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let output = '';
  launcher.stderr.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-8_000);
  });
  const gone = new Promise<void>((resolve) => launcher.once('exit', () => resolve()));
  let ended = false;
  void gone.then(() => {
    ended = true;
  });
  const stop = async () => {
    launcher.kill('SIGTERM');
    await Promise.race([gone, sleep(STOP_MAX_MS)]);
    if (!ended) launcher.kill('SIGKILL');
    await gone;
    await rm(folder, { recursive: true, force: true });
  };
  try {
    say(`starting a stack of its own in ${folder}`);
    const deadline = performance.now() + START_MAX_MS;
    for (;;) {
      if (ended) throw new Error(`The launcher ended:\n${output}`);
      const stack = readIfThere(folder);
      if (stack !== undefined && (await isReady(stack))) {
        return { stack, stackFile: path.join(folder, 'stack.json'), stop };
      }
      if (performance.now() > deadline) throw new Error(`The stack did not start:\n${output}`);
      await sleep(500);
    }
  } catch (error) {
    await stop();
    throw error;
  }
}

function readIfThere(folder: string): StackFile | undefined {
  for (const file of ['stack.json', '.local/stack.json']) {
    try {
      return readStackFile(path.join(folder, file));
    } catch {
      // not written yet
    }
  }
  return undefined;
}

async function isReady(stack: StackFile): Promise<boolean> {
  const answers = PROCESSES.map(async (name) => {
    const metrics = stack.processes[name]?.metrics;
    if (metrics === undefined) return false;
    try {
      const { statusCode, body } = await request(new URL('/ready', metrics));
      await body.dump();
      return statusCode === 200;
    } catch {
      return false;
    }
  });
  return (await Promise.all(answers)).every(Boolean);
}
