import type { Static } from 'typebox';
import type { AccountAccess } from '../../../lib/access/access.ts';
import { tierOf } from '../../../lib/access/entitlement.ts';
import {
  type EndpointSettings,
  SETTING_DEFAULTS,
} from '../../../lib/webhooks/endpoint-settings.ts';
import type { ListedEndpoint } from '../../../lib/webhooks/endpoints.ts';
import type { SecretInForce } from '../../../lib/webhooks/rotation.ts';
import { type EndpointStanding, standingAt } from '../../../lib/webhooks/standing.ts';
import type { EndpointChanges, NewEndpoint } from './schemas.ts';

/** Settings of a new endpoint. */
export function newSettings(body: Static<typeof NewEndpoint>): EndpointSettings {
  return {
    ...SETTING_DEFAULTS,
    ...changedSettings(body),
    url: body.url,
    eventTypes: body.event_types,
  };
}

/** The settings that a body names; null takes a bound away. */
export function changedSettings(
  body: Omit<Static<typeof EndpointChanges>, 'status'>,
): Partial<EndpointSettings> {
  return Object.fromEntries(
    Object.entries(body)
      .filter(([name]) => name in NAMES)
      .map(([name, value]) => [NAMES[name as keyof typeof NAMES], value ?? undefined]),
  );
}

const NAMES = {
  url: 'url',
  description: 'description',
  event_types: 'eventTypes',
  symbols: 'symbols',
  min_confidence: 'minConfidence',
  min_spread: 'minSpread',
  max_spread: 'maxSpread',
  states: 'states',
  backfill: 'backfill',
  headers: 'headers',
  rate_per_s: 'ratePerS',
  max_age_s: 'maxAgeS',
} as const satisfies Record<string, keyof EndpointSettings>;

/** How an endpoint stands now, by what its account has. */
export function stateOf(endpoint: ListedEndpoint, account: AccountAccess): EndpointStanding {
  return standingAt(endpoint.rank, endpoint.status, tierOf(account, Date.now()));
}

export function endpointBody(endpoint: ListedEndpoint, account: AccountAccess) {
  const { filter } = endpoint;
  return {
    id: endpoint.id,
    url: endpoint.url,
    description: endpoint.description,
    event_types: endpoint.eventTypes,
    symbols: filter.symbols,
    min_confidence: filter.minConfidence ?? null,
    min_spread: filter.minSpread ?? null,
    max_spread: filter.maxSpread ?? null,
    states: filter.states,
    backfill: filter.backfill,
    header_names: endpoint.headerNames,
    rate_per_s: endpoint.ratePerS,
    max_age_s: endpoint.maxAgeS,
    state: stateOf(endpoint, account),
    status: endpoint.status,
    disabled_reason: endpoint.disabledReason ?? null,
    failing_since: endpoint.failingSince?.toISOString() ?? null,
    resting_until: endpoint.restingUntil?.toISOString() ?? null,
    backlog_full_since: endpoint.backlogFullSince?.toISOString() ?? null,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.updatedAt.toISOString(),
  };
}

export function secretBody({ createdAt, expiresAt }: SecretInForce) {
  return { created_at: createdAt.toISOString(), expires_at: expiresAt?.toISOString() ?? null };
}
