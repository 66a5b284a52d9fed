import type { PillFilter, WebhookEndpoint } from './endpoint.ts';
import { type OwnHeaders, sealHeaders } from './endpoint-row.ts';
import type { Seal } from './sealing.ts';

/** What the owner of an endpoint chooses. */
export interface EndpointSettings
  extends Pick<WebhookEndpoint, 'url' | 'description' | 'eventTypes' | 'ratePerS' | 'maxAgeS'>,
    PillFilter {
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

/** What is taken where nothing else is said. */
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

/** The columns of what is given; an `undefined` that is given is null. */
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

interface Row {
  url: string;
  description: string;
  event_types: string[];
  symbols: string[];
  min_confidence: number | null;
  min_spread: number | null;
  max_spread: number | null;
  states: string[];
  backfill: boolean;
  headers: Buffer | null;
  rate_per_s: number;
  max_age_s: number;
}
type RowOf<S> = S extends EndpointSettings ? Row : Partial<Row>;

const COLUMNS: Readonly<Record<keyof EndpointSettings, keyof Row>> = {
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
};
