import type { EffectivePill } from '../../../domain/order/judge.ts';
import { passesEndpoint } from '../../../domain/webhooks/endpoints/endpoint-filter.ts';
import type { EndpointFilter } from '../../../domain/webhooks/endpoints/webhook-endpoint.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';

/** Endpoints by symbol, so that a pill is compared only with the endpoints of its symbol. */
export function createSymbolIndex<E extends { readonly filter: EndpointFilter }>() {
  const bySymbol = new Map<string, Set<E>>();
  const ofAllSymbols = new Set<E>();
  return {
    add(endpoint: E): void {
      const { symbols } = endpoint.filter;
      if (symbols.length === 0) ofAllSymbols.add(endpoint);
      for (const symbol of symbols) {
        const set = bySymbol.get(symbol);
        if (set === undefined) bySymbol.set(symbol, new Set([endpoint]));
        else set.add(endpoint);
      }
    },
    /** The filter must be the one that the endpoint was added with. */
    remove(endpoint: E): void {
      ofAllSymbols.delete(endpoint);
      for (const symbol of endpoint.filter.symbols) {
        const set = bySymbol.get(symbol);
        set?.delete(endpoint);
        if (set?.size === 0) bySymbol.delete(symbol);
      }
    },
    /** Endpoints whose filter the pill passes, each once. */
    matching(pill: EffectivePill): E[] {
      const found: E[] = [];
      for (const endpoint of bySymbol.get(pill.symbol) ?? []) {
        if (passesEndpoint(endpoint.filter, pill)) found.push(endpoint);
      }
      if (isTestSymbol(pill.symbol)) return found;
      for (const endpoint of ofAllSymbols) {
        if (passesEndpoint(endpoint.filter, pill)) found.push(endpoint);
      }
      return found;
    },
  };
}
