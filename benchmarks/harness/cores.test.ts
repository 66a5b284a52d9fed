import { expect, test } from 'vitest';
import { onCores, split } from './cores.ts';

test.each([
  ['0', null],
  ['0-1', { server: '1', others: '0' }],
  ['0-3', { server: '3', others: '0,1,2' }],
  ['2,5-6', { server: '6', others: '2,5' }],
])(
  'of the cores %s, the server gets the last one, and everything else gets the others',
  (allowed, cores) => {
    expect(split(allowed)).toEqual(cores);
  },
);

test('without cores to pin it to, a command stays as it is', () => {
  expect(onCores(undefined, 'node', ['a'])).toEqual({ command: 'node', args: ['a'] });
  expect(onCores('1', 'node', ['a'])).toEqual({
    command: 'taskset',
    args: ['-c', '1', 'node', 'a'],
  });
});
