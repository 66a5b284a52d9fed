import { expect, test } from 'vitest';
import { createAccountCache } from './account-cache.ts';

test('all entries of an account are dropped at once, and no others', () => {
  const cache = createAccountCache<number>(10);
  cache.put('a1', 'a', 1);
  cache.put('a2', 'a', 2);
  cache.put('b1', 'b', 3);
  cache.drop('a');
  expect(['a1', 'a2', 'b1'].map(cache.get)).toEqual([undefined, undefined, 3]);
  cache.drop('unknown');
  cache.drop(undefined);
  expect(cache.get('b1')).toBeUndefined();
});

test('at the bound the oldest entry is evicted; putting it again makes it the newest', () => {
  const cache = createAccountCache<number>(2);
  cache.put('1', 'a', 1);
  cache.put('2', 'a', 2);
  cache.put('1', 'b', 3);
  cache.put('3', 'a', 4);
  expect(['1', '2', '3'].map(cache.get)).toEqual([3, undefined, 4]);
  cache.drop('a');
  expect(cache.get('1')).toBe(3);
});
