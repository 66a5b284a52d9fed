import { expect, test } from 'vitest';
import { endpointState } from './endpoint-state.ts';

const STATUSES = ['enabled', 'pending', 'disabled'] as const;

test('without a limit the state is the status', () => {
  for (const status of STATUSES) {
    expect(endpointState(0, status, 'institutional')).toBe(status);
    expect(endpointState(10_000, status, 'institutional')).toBe(status);
  }
});

test('with Pro the oldest five endpoints are within the limit, whatever their status', () => {
  for (const status of STATUSES) {
    expect([0, 4, 5, 6].map((rank) => endpointState(rank, status, 'pro'))).toEqual([
      status,
      status,
      'over_limit',
      'over_limit',
    ]);
  }
});

test.each(['basic', undefined] as const)('with the tier %s no endpoint is entitled', (tier) => {
  for (const status of STATUSES) expect(endpointState(0, status, tier)).toBe('not_entitled');
});
