import { TIER_NAMES, TIERS, type Tier } from '../access/tiers.ts';
import { PERIOD_MS } from './billing-events.ts';

/** What a checkout costs. Amounts are in cents. */
export interface Charge {
  /** To pay: the price less the credit. */
  readonly amountCents: number;
  /** The unused part of the period that an upgrade replaces, at the price of its tier. */
  readonly creditCents: number;
  readonly currency: 'USD';
  /** The paid period begins with the payment. */
  readonly periodDays: number;
}

/** Whether a tier costs more than another. */
export function isUpgrade(from: Tier, to: Tier): boolean {
  return TIER_NAMES.indexOf(to) > TIER_NAMES.indexOf(from);
}

/**
 * The charge for a whole period of a tier. An upgrade begins a new period, so the time left of the
 * present one, at most a whole period, is credited, rounded to the cent.
 * @param present the paid subscription that is replaced
 */
export function chargeFor(
  tier: Tier,
  present?: { readonly tier: Tier; readonly leftMs: number },
): Charge {
  const creditCents = present === undefined ? 0 : creditFor(present.tier, present.leftMs);
  const amountCents = priceCents(tier) - creditCents;
  return { amountCents, creditCents, currency: 'USD', periodDays: PERIOD_MS / 86_400_000 };
}

function priceCents(tier: Tier): number {
  return TIERS[tier].usdPerMonth * 100;
}

/** Integers only: a fraction of a cent would depend on the rounding of floating-point numbers. */
function creditFor(tier: Tier, leftMs: number): number {
  const period = BigInt(PERIOD_MS);
  const left = BigInt(Math.max(0, Math.min(Math.trunc(leftMs), PERIOD_MS)));
  return Number((2n * BigInt(priceCents(tier)) * left + period) / (2n * period));
}
