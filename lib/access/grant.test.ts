import { describe, expect, test } from 'vitest';
import { checkGrant, type GrantedRange, signGrant } from './grant.ts';

const PEPPER = Buffer.alloc(32, 7);
const RANGE: GrantedRange = {
  ...{ accountId: 'acc_1', symbol: '7203.T', epoch: 'k7f3', after: '3-104', until: '3-130' },
};

describe('a grant', () => {
  const grant = signGrant(RANGE, 2_000, PEPPER);

  test('opens its own range until its end', () => {
    expect(checkGrant(grant, RANGE, 1_999, PEPPER)).toBe('granted');
    expect(checkGrant(grant, RANGE, 2_000, PEPPER)).toBe('expired');
  });

  test.each<[string, Partial<GrantedRange>]>([
    ['another account', { accountId: 'acc_2' }],
    ['another symbol', { symbol: '*' }],
    ['another epoch', { epoch: 'k7f4' }],
    ['an earlier beginning', { after: '3-103' }],
    ['the beginning', { after: undefined }],
    ['a later end', { until: '3-131' }],
  ])('does not open %s', (_what, change) => {
    expect(checkGrant(grant, { ...RANGE, ...change }, 1_000, PEPPER)).toBe('refused');
  });

  test.each(['', 'x', '2000.', `3000.${grant.slice(5)}`, `${grant}A`, grant.toUpperCase()])(
    '%s is none',
    (text) => {
      expect(checkGrant(text, RANGE, 1_000, PEPPER)).toBe('refused');
    },
  );

  test('of another pepper is none', () => {
    expect(checkGrant(grant, RANGE, 1_000, Buffer.alloc(32, 8))).toBe('refused');
  });
});
