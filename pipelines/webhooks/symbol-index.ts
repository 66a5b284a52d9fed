import type { EffectivePill } from '../../lib/order/judge.ts';
import type { WebhookEndpoint } from '../../lib/webhooks/endpoint.ts';
import { matches } from '../../lib/webhooks/pill-filter.ts';
import { isTestSymbol } from '../../schemas/pill.ts';

/** Endpoints by what they want: a pill costs a look at those of its symbol alone. */
export interface SymbolIndex<E extends Pick<WebhookEndpoint, 'filter'>> {
  add(endpoint: E): void;
  remove(endpoint: E): void;
  /** Endpoints that want a pill, each once. */
  of(pill: EffectivePill): E[];
}

export function createSymbolIndex<E extends Pick<WebhookEndpoint, 'filter'>>(): SymbolIndex<E> {
  const bySymbol = new Map<string, Set<E>>();
  const ofAll = new Set<E>();
  return {
    add(endpoint) {
      const { symbols } = endpoint.filter;
      if (symbols.length === 0) ofAll.add(endpoint);
      for (const symbol of symbols) {
        const set = bySymbol.get(symbol);
        if (set === undefined) bySymbol.set(symbol, new Set([endpoint]));
        else set.add(endpoint);
      }
    },
    remove(endpoint) {
      ofAll.delete(endpoint);
      for (const symbol of endpoint.filter.symbols) {
        const set = bySymbol.get(symbol);
        set?.delete(endpoint);
        if (set?.size === 0) bySymbol.delete(symbol);
      }
    },
    of(pill) {
      const found: E[] = [];
      for (const endpoint of bySymbol.get(pill.symbol) ?? []) {
        if (matches(endpoint.filter, pill)) found.push(endpoint);
      }
      if (isTestSymbol(pill.symbol)) return found;
      for (const endpoint of ofAll) if (matches(endpoint.filter, pill)) found.push(endpoint);
      return found;
    },
  };
}
