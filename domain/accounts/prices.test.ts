import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TIER_NAMES, TIERS } from '../access/tiers.ts';
import { PERIOD_MS } from './billing-events.ts';
import { chargeFor, isUpgrade } from './prices.ts';

const DAY_MS = 86_400_000;

describe('the charge of', () => {
  test.each([
    ['a first Basic', 'basic', undefined, 1_900, 0],
    ['a first Institutional', 'institutional', undefined, 59_900, 0],
    ['an upgrade at once', 'pro', ['basic', PERIOD_MS], 8_000, 1_900],
    ['an upgrade after half of the period', 'institutional', ['pro', 15 * DAY_MS], 54_950, 4_950],
    // 9,900 × 1 / 30 = 330; 1,900 × 7 / 30 = 443.33…
    ['an upgrade a day before the end', 'institutional', ['pro', DAY_MS], 59_570, 330],
    ['an upgrade a week before the end', 'pro', ['basic', 7 * DAY_MS], 9_457, 443],
    // 1,900 cents × 682,105 ms / 30 days = 0.4999…; one cent is 1,364,210.5 ms of Basic.
    ['a rest below half a cent', 'pro', ['basic', 682_105], 9_900, 0],
    ['a rest above half a cent', 'pro', ['basic', 682_106], 9_899, 1],
    ['nothing left', 'pro', ['basic', 0], 9_900, 0],
    ['a period that is over', 'pro', ['basic', -DAY_MS], 9_900, 0],
    ['more than a period left', 'pro', ['basic', 365 * DAY_MS], 8_000, 1_900],
  ] as const)('%s', (_, tier, present, amountCents, creditCents) => {
    const charge = chargeFor(tier, present && { tier: present[0], leftMs: present[1] });
    expect(charge).toEqual({ amountCents, creditCents, currency: 'USD', periodDays: 30 });
  });

  test('an upgrade is whole cents, above 0, and off by half a cent at most', () => {
    const upgrade = fc
      .tuple(fc.constantFrom(...TIER_NAMES), fc.constantFrom(...TIER_NAMES))
      .filter(([from, to]) => isUpgrade(from, to));
    fc.assert(
      fc.property(upgrade, fc.integer({ min: 0, max: PERIOD_MS }), ([from, to], leftMs) => {
        const { amountCents, creditCents } = chargeFor(to, { tier: from, leftMs });
        expect(Number.isInteger(amountCents)).toBe(true);
        expect(amountCents).toBeGreaterThan(0);
        expect(amountCents + creditCents).toBe(TIERS[to].usdPerMonth * 100);
        const exact = BigInt(TIERS[from].usdPerMonth * 100) * BigInt(leftMs);
        const error = BigInt(creditCents) * BigInt(PERIOD_MS) - exact;
        expect(2n * (error < 0n ? -error : error)).toBeLessThanOrEqual(BigInt(PERIOD_MS));
      }),
    );
  });
});

test('only a tier of a higher price is an upgrade', () => {
  for (const from of TIER_NAMES) {
    for (const to of TIER_NAMES) {
      expect(isUpgrade(from, to)).toBe(TIERS[to].usdPerMonth > TIERS[from].usdPerMonth);
    }
  }
});
