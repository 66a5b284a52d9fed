import { TIERS, type Tier } from '../../access/tiers.ts';
import type { EndpointStatus } from './webhook-endpoint.ts';

/** An endpoint's state, by its own status and its account's tier. */
export type EndpointState = EndpointStatus | 'over_limit' | 'not_entitled';

/**
 * Returns the state of an endpoint. If a tier allows fewer endpoints than there are, the oldest stay
 * in use, whatever their status: none is deleted, and the others work again after an upgrade.
 * @param rank how many endpoints of the account are older @param tier in force; undefined = none
 */
export function endpointState(
  rank: number,
  status: EndpointStatus,
  tier: Tier | undefined,
): EndpointState {
  if (tier === undefined || !TIERS[tier].capabilities.includes('webhooks')) return 'not_entitled';
  return isWithinLimit(rank, tier) ? status : 'over_limit';
}

/** Whether a tier allows an endpoint with this many older ones. */
export function isWithinLimit(rank: number, tier: Tier): boolean {
  const { webhooks } = TIERS[tier];
  return webhooks === null || rank < webhooks;
}
