import { expect, test } from 'vitest';
import { hashToken, newToken } from './secret-token.ts';

test('a token is 256 random bits in base64url', () => {
  const tokens = Array.from({ length: 1_000 }, newToken);
  expect(new Set(tokens).size).toBe(1_000);
  for (const token of tokens) {
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
  }
  // Each of the 32 bytes takes many values.
  for (let index = 0; index < 32; index += 1) {
    const values = new Set(tokens.map((token) => Buffer.from(token, 'base64url')[index]));
    expect(values.size).toBeGreaterThan(200);
  }
});

test('the stored hash is the SHA-256 of the text', () => {
  // FIPS 180-2, appendix B.1.
  const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  expect(hashToken('abc').toString('hex')).toBe(abc);
  const token = newToken();
  expect(hashToken(token)).toEqual(hashToken(token));
  expect(hashToken(token).equals(Buffer.from(token, 'base64url'))).toBe(false);
});
