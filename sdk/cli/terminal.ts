import type { Writable } from 'node:stream';

/** The environment of a command; `main` passes the real one, tests pass their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder that may have a `.local` folder, as a running stack writes it. */
  readonly folder: string;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Aborts on Ctrl-C, on SIGTERM, and when the reader closes the output. */
  readonly signal: AbortSignal;
}

/** A fault of the command line: reported without a stack trace, with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Writes a line. @returns a promise while the pipe is full, so that it holds the stream back */
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
