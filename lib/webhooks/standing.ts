import { TIERS, type Tier } from '../access/tiers.ts';
import type { EndpointStatus } from './endpoint.ts';

/** What an endpoint does now, by its own status and by what its account has bought. */
export type EndpointStanding = EndpointStatus | 'over_limit' | 'not_entitled';

/**
 * How an endpoint stands. Where a tier has fewer places than there are endpoints, the oldest have
 * them, whatever their status: nothing is deleted, and the same ones work again after an upgrade.
 * @param rank how many of its account are older @param tier the one in force; undefined: none
 */
export function standingAt(
  rank: number,
  status: EndpointStatus,
  tier: Tier | undefined,
): EndpointStanding {
  if (tier === undefined || !TIERS[tier].capabilities.includes('webhooks')) return 'not_entitled';
  return hasPlace(rank, tier) ? status : 'over_limit';
}

/** Whether one with so many before it has a place. */
export function hasPlace(rank: number, tier: Tier): boolean {
  const { webhooks } = TIERS[tier];
  return webhooks === null || rank < webhooks;
}
