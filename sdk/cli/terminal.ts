import type { Writable } from 'node:stream';

/** What a command needs of the world; tests and `main` bring their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder in which `.local` is looked for. */
  readonly folder: string;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Aborts at Ctrl-C, at SIGTERM, and when nobody reads the output any more. */
  readonly signal: AbortSignal;
}

/** The command line itself is at fault: told without a stack, with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Writes a line. @returns once there is room for another: a slow pipe holds the stream back */
export function writeLine(to: Writable, line: string): Promise<void> | undefined {
  if (to.write(`${line}\n`) || to.destroyed) return undefined;
  return new Promise((resolve) => {
    const done = () => {
      to.off('drain', done);
      to.off('close', done);
      resolve();
    };
    to.on('drain', done);
    to.on('close', done);
  });
}
