import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addMainBenchmarks } from './main-benchmarks.ts';

test.each([
  ['alone', ['nope']],
  ['with options', ['nope', '--seconds', '5']],
])('a benchmark that does not exist is named, with those that do: %s', async (_, words) => {
  const program = new Command('bench').exitOverride().configureOutput({ writeErr: () => {} });
  addMainBenchmarks(program, () => {});
  program.command('ingest').exitOverride();
  await expect(program.parseAsync(words, { from: 'user' })).rejects.toThrow(
    'There is no benchmark "nope": name one of all, ingest, or none',
  );
});
