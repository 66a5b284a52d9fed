import { describe, expect, test } from 'vitest';
import { checkGapFillGrant, type GrantedRange, signGapFillGrant } from './gap-fill-grant.ts';
import { fixedPepper } from './pepper.ts';

const PEPPER = fixedPepper(Buffer.alloc(32, 7));
const RANGE: GrantedRange = {
  accountId: 'acc_1',
  symbol: '7203.T',
  epoch: 'k7f3',
  after: '3-104',
  until: '3-130',
};

describe('a grant', () => {
  const grant = signGapFillGrant(RANGE, 2_000, PEPPER);

  test('is valid for its own range until it expires', () => {
    expect(checkGapFillGrant(grant, RANGE, 1_999, PEPPER)).toBe('granted');
    expect(checkGapFillGrant(grant, RANGE, 2_000, PEPPER)).toBe('expired');
  });

  test.each<[string, Partial<GrantedRange>]>([
    ['another account', { accountId: 'acc_2' }],
    ['another symbol', { symbol: '*' }],
    ['another epoch', { epoch: 'k7f4' }],
    ['an earlier beginning', { after: '3-103' }],
    ['the beginning', { after: undefined }],
    ['a later end', { until: '3-131' }],
  ])('is refused for %s', (_what, change) => {
    expect(checkGapFillGrant(grant, { ...RANGE, ...change }, 1_000, PEPPER)).toBe('refused');
  });

  test.each(['', 'x', '2000.', `3000.${grant.slice(5)}`, `${grant}A`, grant.toUpperCase()])(
    'is refused if it is %j',
    (text) => {
      expect(checkGapFillGrant(text, RANGE, 1_000, PEPPER)).toBe('refused');
    },
  );

  test('is refused under another pepper', () => {
    expect(checkGapFillGrant(grant, RANGE, 1_000, fixedPepper(Buffer.alloc(32, 8)))).toBe(
      'refused',
    );
  });
});
