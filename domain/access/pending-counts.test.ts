import { expect, test } from 'vitest';
import { createPendingCounts } from './pending-counts.ts';

test('counts of an account add up until they are taken, by key and endpoint', () => {
  const counts = createPendingCounts();
  counts.add('acc_a', 'key_1', 'GET /x', 1);
  counts.add('acc_a', 'key_1', 'GET /x', 1);
  counts.add('acc_a', 'key_2', 'GET /x', -1);
  counts.addTotal('acc_b', 0);
  expect(counts.take(1)).toEqual([
    [
      'acc_a',
      {
        calls: 1,
        tally: new Map([
          ['key_1', new Map([['GET /x', 2]])],
          ['key_2', new Map([['GET /x', -1]])],
        ]),
      },
    ],
  ]);
  expect(counts.take(10)).toEqual([['acc_b', { calls: 0, tally: new Map() }]]);
  expect(counts.size).toBe(0);
});

test('restored counts join later ones, also those without a key', () => {
  const counts = createPendingCounts();
  counts.add('acc_a', 'key_1', 'GET /x', 1);
  counts.addTotal('acc_a', -3);
  const taken = counts.take(10);
  counts.add('acc_a', 'key_1', 'GET /x', 1);
  counts.restore(taken);
  expect(counts.take(10)).toEqual([
    ['acc_a', { calls: -1, tally: new Map([['key_1', new Map([['GET /x', 2]])]]) }],
  ]);
});

test('at the bound, known counts still add up and new ones are dropped until some are taken', () => {
  const counts = createPendingCounts(2);
  counts.add('acc_a', 'key_1', 'GET /x', 1);
  counts.add('acc_a', 'key_1', 'GET /x', 1);
  counts.add('acc_a', 'key_1', 'GET /y', 1);
  counts.add('acc_b', 'key_1', 'GET /x', 1);
  expect(counts.dropped).toBe(2);
  expect(counts.take(10)).toEqual([
    ['acc_a', { calls: 2, tally: new Map([['key_1', new Map([['GET /x', 2]])]]) }],
  ]);
  counts.add('acc_b', 'key_1', 'GET /x', 1);
  expect(counts.dropped).toBe(2);
  expect(counts.size).toBe(1);
});
