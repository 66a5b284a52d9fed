import { isTestSymbol } from '../../../schemas/pill.ts';
import { passesFilter } from '../../../schemas/pill-filter.ts';
import type { EndpointFilter } from './webhook-endpoint.ts';

/** Whether a filter includes a symbol; test symbols must be named one by one. */
export function includesSymbol({ symbols }: EndpointFilter, symbol: string): boolean {
  return symbols.length === 0 ? !isTestSymbol(symbol) : symbols.includes(symbol);
}

/** Whether a pill passes a filter, apart from `symbols`: see `includesSymbol`. */
export function passesEndpoint(
  filter: EndpointFilter,
  pill: Parameters<typeof passesFilter>[1] & { readonly backfill: boolean },
): boolean {
  return (filter.backfill || !pill.backfill) && passesFilter(filter, pill);
}
