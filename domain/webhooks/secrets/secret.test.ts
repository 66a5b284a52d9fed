import { expect, test } from 'vitest';
import { newSecret, SecretError, secretBytes, secretText } from './secret.ts';

test('a new secret is whsec_ and the base64 of 32 random bytes, and decodes to them', () => {
  const { text, bytes } = newSecret();
  expect(text).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(secretBytes(text)).toEqual(bytes);
  expect(newSecret().text).not.toBe(text);
});

test.each([24, 64])('a secret may have %d bytes', (length) => {
  const bytes = Buffer.alloc(length, 7);
  expect(secretBytes(secretText(bytes))).toEqual(bytes);
});

const good = secretText(Buffer.alloc(32, 255));
test.each([
  ['empty', ''],
  ['prefix alone', 'whsec_'],
  ['without prefix', good.slice(6)],
  ['another prefix', good.replace('whsec', 'WHSEC')],
  ['23 bytes', secretText(Buffer.alloc(23))],
  ['65 bytes', secretText(Buffer.alloc(65))],
  ['URL-safe base64', good.replaceAll('/', '_')],
  ['without padding', good.slice(0, -1)],
  ['blank at the end', `${good} `],
  ['junk inside', `${good.slice(0, 9)}*${good.slice(9)}`],
  ['bits left over', `${good.slice(0, -2)}9=`],
])('refused: %s', (_, text) => {
  expect(() => secretBytes(text)).toThrow(SecretError);
});
