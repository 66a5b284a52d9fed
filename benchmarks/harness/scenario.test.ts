import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addAll } from './scenario.ts';

test.each([
  ['alone', ['nope']],
  ['with options', ['nope', '--seconds', '5']],
])('an unknown benchmark is named, with the known ones: %s', async (_, words) => {
  const program = new Command('bench').exitOverride().configureOutput({ writeErr: () => {} });
  addAll(program, [], () => {});
  program.command('ingest').exitOverride();
  await expect(program.parseAsync(words, { from: 'user' })).rejects.toThrow(
    'There is no benchmark "nope": name one of all, ingest, or none',
  );
});
