#!/usr/bin/env node
import { EXIT_CODES } from './exit-codes.ts';
import { runProgram } from './program.ts';

/** After Ctrl-C the process ends within this time, even if something hangs. */
const END_WITHIN_MS = 2_000;

const stop = new AbortController();
const end = (reason: 'interrupted' | 'unread') => {
  stop.abort(reason);
  const { code } = reason === 'unread' ? EXIT_CODES.ok : EXIT_CODES.interrupted;
  setTimeout(() => process.exit(code), END_WITHIN_MS).unref();
};
process.once('SIGINT', () => end('interrupted'));
process.once('SIGTERM', () => end('interrupted'));
// `pillole tail … | head`: the reader closes the pipe when it has enough.
for (const output of [process.stdout, process.stderr]) {
  output.on('error', () => end('unread'));
}

const exit = await runProgram(
  {
    env: process.env,
    folder: process.cwd(),
    signal: stop.signal,
    stdout: process.stdout,
    stderr: process.stderr,
  },
  process.argv.slice(2),
);
process.exitCode = EXIT_CODES[exit].code;
