import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { fixedPepper, type Pepper } from './pepper.ts';
import { createSeal, SealError } from './sealing.ts';

const bytes = randomBytes(32);
const pepper = fixedPepper(bytes);
const plain = Buffer.from('{"authorization":"Bearer x"}');

test.each([0, 1, 32, 20_000])(
  '%d sealed bytes open unchanged, also in another process',
  (length) => {
    const text = randomBytes(length);
    const sealed = createSeal(pepper).seal(text, 'whe_a');
    expect(createSeal(fixedPepper(Buffer.from(bytes))).open(sealed, 'whe_a')).toEqual(text);
  },
);

test('sealing twice gives different bytes, without any of the text', () => {
  const seal = createSeal(pepper);
  const [one, two] = [seal.seal(plain, 'whe_a'), seal.seal(plain, 'whe_a')];
  expect(one.equals(two)).toBe(false);
  expect(one.includes('Bearer')).toBe(false);
});

test('sealed bytes open for no other owner and with no other pepper', () => {
  const sealed = createSeal(pepper).seal(plain, 'whe_a');
  expect(() => createSeal(pepper).open(sealed, 'whe_b')).toThrow(SealError);
  expect(() => createSeal(fixedPepper(randomBytes(32))).open(sealed, 'whe_a')).toThrow(SealError);
});

test('any changed byte and any truncation is detected', () => {
  const seal = createSeal(pepper);
  const sealed = seal.seal(plain, 'whe_a');
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at] = changed[at]! ^ 1;
    expect(() => seal.open(changed, 'whe_a')).toThrow(SealError);
    expect(() => seal.open(sealed.subarray(0, at), 'whe_a')).toThrow(SealError);
  }
});

test('a text opens as long as the version that sealed it is accepted; new texts use the newest active one', () => {
  const at = Date.now();
  const version = (n: number, activeFromMs: number) => ({
    version: n,
    activeFromMs,
    bytes: Buffer.alloc(32, n),
  });
  const [one, two, later] = [version(1, 0), version(2, at - 1), version(3, at + 60_000)];
  const both: Pepper = { current: () => two, all: () => [later, two, one] };
  const old = createSeal({ current: () => one, all: () => [one] }).seal(plain, 'whe_a');
  const renewed = createSeal(both).seal(createSeal(both).open(old, 'whe_a'), 'whe_a');
  expect([old[0], renewed[0]]).toEqual([1, 2]);
  const retired = createSeal({ current: () => two, all: () => [two] });
  expect(retired.open(renewed, 'whe_a')).toEqual(plain);
  expect(() => retired.open(old, 'whe_a')).toThrow(SealError);
  // Another version in the first byte is another key.
  renewed[0] = 1;
  expect(() => createSeal(both).open(renewed, 'whe_a')).toThrow(SealError);
});
