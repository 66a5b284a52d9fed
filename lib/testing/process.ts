import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import getPort from 'get-port';
import { request } from 'undici';
import { packageRoot } from '../root.ts';
import { GiveUp, waitFor } from './wait.ts';

/** A real process of ours, run by a test. */
export interface TestProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Base address of /metrics, /health and /ready. */
  readonly opsUrl: string;
  /** Everything it wrote to stdout and stderr so far. */
  output(): string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  ready(): Promise<void>;
  /** kill -9, and waits until it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and waits until it is gone. */
  stop(): Promise<number | string>;
}

const OUTPUT_CHARS_MAX = 1_000_000;

/**
 * Starts a compiled entry file, e.g. `gateway/ingest/main.js`, under dist.
 * `metricsPort` is chosen; everything else comes from `env`.
 */
export async function startProcess(
  entry: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<TestProcess> {
  const metricsPort = env.METRICS_PORT ?? String(await getPort());
  const child = spawn(
    process.execPath,
    ['--enable-source-maps', path.join(packageRoot, 'dist', entry), ...args],
    {
      cwd: packageRoot,
      env: { PATH: process.env.PATH, ...env, METRICS_PORT: metricsPort },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-OUTPUT_CHARS_MAX);
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'gone'));
  });
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
      waitFor(`${entry} to be ready`, async () => {
        if (gone) throw new GiveUp(`${entry} ended:\n${output}`);
        const { statusCode, body } = await request(`${opsUrl}/ready`);
        const text = await body.text();
        return statusCode === 200 ? true : `${text}\n${output.slice(-2_000)}`;
      }).then(() => undefined),
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
