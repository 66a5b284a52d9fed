import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSeal, SealError } from './sealing.ts';

const pepper = randomBytes(32);
const plain = Buffer.from('{"authorization":"Bearer x"}');

test.each([0, 1, 32, 20_000])('%d bytes open as they were, also in another process', (length) => {
  const bytes = randomBytes(length);
  const sealed = createSeal(pepper).seal(bytes, 'whe_a');
  expect(createSeal(Buffer.from(pepper)).open(sealed, 'whe_a')).toEqual(bytes);
});

test('sealed twice it differs, and holds nothing of the text', () => {
  const seal = createSeal(pepper);
  const [one, two] = [seal.seal(plain, 'whe_a'), seal.seal(plain, 'whe_a')];
  expect(one.equals(two)).toBe(false);
  expect(one.includes('Bearer')).toBe(false);
});

test('it opens for no other owner and with no other pepper', () => {
  const sealed = createSeal(pepper).seal(plain, 'whe_a');
  expect(() => createSeal(pepper).open(sealed, 'whe_b')).toThrow(SealError);
  expect(() => createSeal(randomBytes(32)).open(sealed, 'whe_a')).toThrow(SealError);
});

test('a change of any byte, and every shortening, is noticed', () => {
  const seal = createSeal(pepper);
  const sealed = seal.seal(plain, 'whe_a');
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at] = changed[at]! ^ 1;
    expect(() => seal.open(changed, 'whe_a')).toThrow(SealError);
    expect(() => seal.open(sealed.subarray(0, at), 'whe_a')).toThrow(SealError);
  }
});
