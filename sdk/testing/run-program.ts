import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';

/** A program run by a test. */
export interface Run {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Complete lines of stdout, parsed as JSON. */
  json(): Record<string, unknown>[];
  /** Resolves with the exit code or the signal's name. */
  readonly exited: Promise<number | string>;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Compiled files of this package, as `npm run build` writes them. */
export const distFolder: string = path.resolve(import.meta.dirname, '../../dist/sdk');

const running = new Set<ChildProcess>();

/** Runs a JavaScript file in Node; of this process's environment it gets only PATH. */
export const runNode = (file: string, args: readonly string[], options: RunOptions = {}): Run =>
  runProgram(process.execPath, [file, ...args], options);

/** Runs a program; of this process's environment it gets only PATH. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Run {
  const { cwd = '/', env = {} } = options;
  const child = spawn(program, [...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout!.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr!.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    json: () =>
      stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    exited: new Promise((resolve) => {
      // `close` comes after all output has been read, `exit` may come earlier.
      child.once('close', (code, signal) => {
        running.delete(child);
        resolve(code ?? signal ?? 'gone');
      });
    }),
  };
}

/** Runs the command line. */
export const runCli = (args: readonly string[], options: RunOptions = {}): Run =>
  runNode(path.join(distFolder, 'cli/main.js'), args, options);

/** Kills the programs that a test has left running. */
export function endRuns(): void {
  for (const child of running) child.kill('SIGKILL');
}
