import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { request } from 'undici';
import { NODE_ARGUMENTS } from '../lib/child-process/node-arguments.ts';
import { packageRoot } from '../lib/files/package-root.ts';
import { withOwnRole } from './engine-addresses.ts';
import { getPort } from './ports.ts';
import { GiveUp, waitFor } from './wait.ts';

/** A real process of the platform, run by a test. */
export interface TestProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Base address of /metrics, /health and /ready. */
  readonly opsUrl: string;
  /** The output on stdout and stderr so far. */
  output(): string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  ready(): Promise<void>;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>;
  /** Sends SIGTERM and waits for the exit. */
  stop(): Promise<number | string>;
}

const OUTPUT_CHARS_MAX = 1_000_000;
/**
 * A process starts within seconds; at a load of 50 on two cores an API took over 90 s. One that ends
 * is reported at once.
 */
const READY_MS = 240_000;

/** How long a descendant may keep the output open after the end of its parent. */
const OUTPUT_OPEN_MS = 5_000;

/**
 * Resolves with the exit code, or the signal's name, when all output has been read. The event `exit`
 * alone may come before the last lines; `close` alone would wait for descendants.
 */
export function exitOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      const end = () => resolve(code ?? signal ?? 'gone');
      child.once('close', end);
      setTimeout(end, OUTPUT_OPEN_MS).unref();
    });
  });
}

/**
 * Starts a compiled entry file below dist, e.g. `gateway/ingest/main.js`. METRICS_PORT is a free port
 * unless `env` sets it; everything else comes from `env`.
 */
export async function startProcess(
  entry: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<TestProcess> {
  const metricsPort = env.METRICS_PORT ?? String(await getPort());
  const child = spawn(
    process.execPath,
    [...NODE_ARGUMENTS, path.join(packageRoot, 'dist', entry), ...args],
    {
      cwd: packageRoot,
      env: { PATH: process.env.PATH, ...withOwnRole(entry, args, env), METRICS_PORT: metricsPort },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-OUTPUT_CHARS_MAX);
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const exited = exitOf(child);
  let gone = false;
  void exited.then(() => {
    gone = true;
  });
  const opsUrl = `http://127.0.0.1:${metricsPort}`;
  return {
    pid: child.pid ?? -1,
    child,
    opsUrl,
    output: () => output,
    exited,
    ready: () =>
      waitFor(
        `${entry} to be ready`,
        async () => {
          if (gone) throw new GiveUp(`${entry} ended:\n${output}`);
          const { statusCode, body } = await request(`${opsUrl}/ready`);
          const text = await body.text();
          return statusCode === 200 ? true : `${text}\n${output.slice(-2_000)}`;
        },
        READY_MS,
      ).then(
        () => undefined,
        (error: unknown) => {
          // The set-up that waited fails: the process must not outlive the run.
          child.kill('SIGKILL');
          throw error;
        },
      ),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    stop() {
      child.kill('SIGTERM');
      return exited;
    },
  };
}
