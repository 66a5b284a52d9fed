import { describe, expect, test } from 'vitest';
import { hashKey, isWellFormedKey, keyHint, newKey } from './key-format.ts';

describe('a text is not a well-formed key:', () => {
  const key = newKey();
  test.each([
    ['empty', ''],
    ['only the prefix', 'pil_live_'],
    ['one letter short', key.slice(0, -1)],
    ['one letter long', `${key}0`],
    ['a line break at its end', `${key}\n`],
    ['a space before it', ` ${key}`],
    ['another prefix', key.replace('pil_live_', 'pil_test_')],
    ['two joined by a comma', `${key}, ${key}`],
    ['a letter outside base 62', key.replace(/_[^_]*$/, '_+00000')],
    ['a megabyte', 'pil_live_'.padEnd(1_000_000, 'a')],
  ])('%s', (_, text) => {
    expect(isWellFormedKey(text)).toBe(false);
  });

  test('any single letter changed', () => {
    for (let i = 0; i < key.length; i += 1) {
      const letter = key[i] === '7' ? '8' : '7';
      expect(isWellFormedKey(`${key.slice(0, i)}${letter}${key.slice(i + 1)}`)).toBe(false);
    }
  });
});

test('new keys are well formed and differ', () => {
  const keys = Array.from({ length: 1_000 }, newKey);
  expect(keys.every(isWellFormedKey)).toBe(true);
  expect(new Set(keys).size).toBe(1_000);
});

test('a checksum that begins with zeros keeps its length', () => {
  // About one key in 1,000 has two leading zeros: 62^6 is 13 times 2^32.
  for (const key of Array.from({ length: 2_000 }, newKey)) expect(key).toHaveLength(48);
});

test('the hash depends on key and pepper, the hint shows four letters', () => {
  const key = newKey();
  const pepper = Buffer.alloc(32, 1);
  expect(hashKey(key, pepper)).toEqual(hashKey(key, pepper));
  expect(hashKey(key, pepper)).toHaveLength(32);
  expect(hashKey(key, pepper)).not.toEqual(hashKey(key, Buffer.alloc(32, 2)));
  expect(hashKey(key, pepper)).not.toEqual(hashKey(newKey(), pepper));
  expect(keyHint(key)).toBe(`pil_live_…${key.slice(37, 41)}`);
});
