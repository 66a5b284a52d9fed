import { expect, test } from 'vitest';
import { DEFAULT_SCOPES, hasScope, SCOPES } from './scopes.ts';

test.each([
  ['read', ['read', 'webhooks:read']],
  ['stream', ['stream']],
  ['webhooks:read', ['webhooks:read']],
  ['webhooks:write', ['webhooks:read', 'webhooks:write']],
  ['support', ['support']],
] as const)('%s grants %j and nothing else', (scope, granted) => {
  expect(SCOPES.filter((needed) => hasScope([scope], needed))).toEqual(granted);
});

test('a key that names no scopes can change nothing', () => {
  const granted = SCOPES.filter((needed) => hasScope(DEFAULT_SCOPES, needed));
  expect(granted).toEqual(['read', 'stream', 'webhooks:read']);
  expect(hasScope([], 'read')).toBe(false);
});
