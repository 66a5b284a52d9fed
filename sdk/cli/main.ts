#!/usr/bin/env node
import { EXIT_CODES } from './exit-codes.ts';
import { runProgram } from './program.ts';

/** Whatever hangs, Ctrl-C ends it within this. */
const END_WITHIN_MS = 2_000;

const stop = new AbortController();
const end = (reason: 'interrupted' | 'unread') => {
  stop.abort(reason);
  const { code } = reason === 'unread' ? EXIT_CODES.ok : EXIT_CODES.interrupted;
  setTimeout(() => process.exit(code), END_WITHIN_MS).unref();
};
process.once('SIGINT', () => end('interrupted'));
process.once('SIGTERM', () => end('interrupted'));
// `pillole tail … | head`: whoever has read enough closes the pipe.
for (const output of [process.stdout, process.stderr]) {
  output.on('error', () => end('unread'));
}

const exit = await runProgram(
  {
    ...{ env: process.env, folder: process.cwd(), signal: stop.signal },
    ...{ stdout: process.stdout, stderr: process.stderr },
  },
  process.argv.slice(2),
);
process.exitCode = EXIT_CODES[exit].code;
