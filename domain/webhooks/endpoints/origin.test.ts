import { expect, test } from 'vitest';
import { redactedUrl } from './origin.ts';

const LONG = 'abcdefghij0123456789';

test.each([
  ['https://example.com', 'https://example.com'],
  ['https://example.com/hooks/pillole', 'https://example.com/hooks/pillole'],
  ['https://example.com/hook?token=abc', 'https://example.com/hook?***'],
  ['https://example.com:8443/?a', 'https://example.com:8443/?***'],
  [`https://example.com/services/T0/B0/${LONG}`, 'https://example.com/services/T0/B0/***'],
  [`https://example.com/${LONG}/in?${LONG}`, 'https://example.com/***/in?***'],
  ['https://user:secret@example.com/hook', 'https://example.com/hook'],
])('%s is shown as %s', (url, shown) => {
  expect(redactedUrl(url)).toBe(shown);
});
