import { expect, test } from 'vitest';
import { createByAccount } from './by-account.ts';

test('all of an account is dropped at once, and nothing else', () => {
  const held = createByAccount<number>(10);
  held.put('a1', 'a', 1);
  held.put('a2', 'a', 2);
  held.put('b1', 'b', 3);
  held.drop('a');
  expect(['a1', 'a2', 'b1'].map(held.get)).toEqual([undefined, undefined, 3]);
  held.drop('unknown');
  held.drop(undefined);
  expect(held.get('b1')).toBeUndefined();
});

test('at the bound the oldest goes, also when it is put in again', () => {
  const held = createByAccount<number>(2);
  held.put('1', 'a', 1);
  held.put('2', 'a', 2);
  held.put('1', 'b', 3);
  held.put('3', 'a', 4);
  expect(['1', '2', '3'].map(held.get)).toEqual([3, undefined, 4]);
  held.drop('a');
  expect(held.get('1')).toBe(3);
});
