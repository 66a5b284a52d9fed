import { expect, test } from 'vitest';
import type { EndpointStatus } from './endpoint.ts';
import { standingOf } from './standing.ts';

const endpoints = (...statuses: EndpointStatus[]) => statuses.map((status) => ({ status }));
const seven = endpoints(
  ...(['enabled', 'pending', 'disabled', 'enabled', 'enabled'] as const),
  ...(['enabled', 'disabled'] as const),
);

test('without a limit each stands as its status says', () => {
  const statuses = seven.map(({ status }) => status);
  expect(standingOf(seven, 'institutional')).toEqual(statuses);
});

test('the oldest five have the places of Pro, whatever their status', () => {
  expect(standingOf(seven, 'pro')).toEqual([
    ...['enabled', 'pending', 'disabled', 'enabled', 'enabled'],
    ...['over_limit', 'over_limit'],
  ]);
  expect(standingOf(seven.slice(0, 5), 'pro')).not.toContain('over_limit');
});

test.each(['basic', undefined] as const)('with the tier %s none is entitled', (tier) => {
  expect(new Set(standingOf(seven, tier))).toEqual(new Set(['not_entitled']));
  expect(standingOf([], tier)).toEqual([]);
});
