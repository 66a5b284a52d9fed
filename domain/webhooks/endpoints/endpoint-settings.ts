import type { Insertable } from 'kysely';
import type { Tables } from '../../../lib/postgres/tables.ts';
import type { Seal } from '../../access/sealing.ts';
import { type OwnHeaders, sealHeaders } from './endpoint-row.ts';
import type { EndpointFilter, WebhookEndpoint } from './webhook-endpoint.ts';

/** Settings that the owner of an endpoint chooses. */
export interface EndpointSettings
  extends Pick<WebhookEndpoint, 'url' | 'description' | 'eventTypes' | 'ratePerS' | 'maxAgeS'>,
    EndpointFilter {
  readonly headers: OwnHeaders;
}

export const SETTING_LIMITS = {
  urlCharsMax: 2_048,
  descriptionCharsMax: 200,
  symbolsMax: 1_000,
  statesMax: 50,
  stateCharsMax: 32,
  confidenceMax: 1_000_000,
  ratePerSMax: 1_000,
  maxAgeSMax: 259_200,
} as const;

/** Defaults of settings that are not given. */
export const SETTING_DEFAULTS = {
  description: '',
  symbols: [],
  minConfidence: undefined,
  minSpread: undefined,
  maxSpread: undefined,
  states: [],
  backfill: false,
  headers: {},
  ratePerS: 100,
  maxAgeS: 3_600,
} as const satisfies Partial<EndpointSettings>;

/** The columns of the given settings; a given `undefined` becomes null. */
export function rowOf<S extends Partial<EndpointSettings>>(
  settings: S,
  seal: Seal,
  endpointId: string,
): RowOf<S> {
  const row: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(settings)) {
    const column = COLUMNS[name as keyof EndpointSettings];
    if (column === undefined) continue;
    row[column] =
      column === 'headers' ? sealHeaders(seal, value as OwnHeaders, endpointId) : (value ?? null);
  }
  return row as RowOf<S>;
}

type RowOf<S> = {
  [Name in keyof S & keyof EndpointSettings as (typeof COLUMNS)[Name]]: Insertable<
    Tables['webhook_endpoints']
  >[(typeof COLUMNS)[Name]];
};

const COLUMNS = {
  url: 'url',
  description: 'description',
  eventTypes: 'event_types',
  symbols: 'symbols',
  minConfidence: 'min_confidence',
  minSpread: 'min_spread',
  maxSpread: 'max_spread',
  states: 'states',
  backfill: 'backfill',
  headers: 'headers',
  ratePerS: 'rate_per_s',
  maxAgeS: 'max_age_s',
} as const satisfies Record<keyof EndpointSettings, keyof Tables['webhook_endpoints']>;
