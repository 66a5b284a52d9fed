import { expect, test } from 'vitest';
import { makePill } from '../../testing/pills.ts';
import { createIdentities, isInFlight, whenSettled } from './identities.ts';

test('an acknowledged pill is found with its content and position', async () => {
  const identities = createIdentities(10);
  const pill = makePill({ market_state: 'lunch break', gross_spread_percent: -0.25 });
  const claimed = identities.claim('a', pill, 3);
  const settled = whenSettled(claimed);
  const flying = identities.find('a')!;
  expect([isInFlight(flying), flying.pill]).toEqual([true, pill]);
  identities.acknowledge(claimed, 7);
  expect(await settled).toBe(true);
  const { id: _, symbol: __, timestamp, gross_spread_percent, market_state, confidence } = pill;
  expect(identities.find('a')).toEqual({
    pill: { timestamp, gross_spread_percent, market_state, confidence },
    partition: 3,
    offset: 7,
  });
  expect(isInFlight(identities.find('a')!)).toBe(false);
});

test('a pill that was not acknowledged is forgotten', async () => {
  const identities = createIdentities(10);
  const claimed = identities.claim('a', makePill(), 0);
  const settled = whenSettled(claimed);
  identities.release(claimed);
  expect(await settled).toBe(false);
  expect([identities.find('a'), identities.size()]).toEqual([undefined, 0]);
});

test('at least the last half of the bound is remembered, never more than the bound', () => {
  const identities = createIdentities(100);
  for (let n = 0; n < 1_000; n += 1) {
    identities.acknowledge(identities.claim(`${n}`, makePill(), 0), n);
    expect(identities.size()).toBeLessThanOrEqual(100);
    expect(identities.find(`${n}`)!.offset).toBe(n);
    const oldest = Math.max(0, n - 49);
    expect(identities.find(`${oldest}`)!.offset).toBe(oldest);
  }
  expect(identities.find('0')).toBeUndefined();
});
