import { expect, test } from 'vitest';
import { standingAt } from './standing.ts';

const STATUSES = ['enabled', 'pending', 'disabled'] as const;

test('without a limit each stands as its status says', () => {
  for (const status of STATUSES) {
    expect(standingAt(0, status, 'institutional')).toBe(status);
    expect(standingAt(10_000, status, 'institutional')).toBe(status);
  }
});

test('the oldest five have the places of Pro, whatever their status', () => {
  for (const status of STATUSES) {
    expect([0, 4, 5, 6].map((rank) => standingAt(rank, status, 'pro'))).toEqual([
      ...[status, status, 'over_limit', 'over_limit'],
    ]);
  }
});

test.each(['basic', undefined] as const)('with the tier %s none is entitled', (tier) => {
  for (const status of STATUSES) expect(standingAt(0, status, tier)).toBe('not_entitled');
});
