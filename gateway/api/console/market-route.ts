import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import type { TradingVenue } from '../../../domain/market/calendars/venue-rules.ts';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { SYMBOLS_MAX } from '../limits.ts';
import { metered, OPEN_LIMITED } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';
import { strict } from '../server/schemas.ts';
import { listingName, VENUE_NAMES } from './listing-names.ts';

/** Spreads of a sparkline of the page. */
const SPREADS_MAX = 60;

/** The last live pills of a symbol in memory, oldest first, with their receive times in µs. */
export type LastSpreads = (
  symbol: string,
) => readonly { readonly spread: number; readonly receivedAt: number }[];

const Query = strict({
  symbols: Type.String({
    pattern: `^[^,]{1,64}(,[^,]{1,64}){0,${SYMBOLS_MAX - 1}}$`,
    description: `1 to ${SYMBOLS_MAX} symbols, separated by commas`,
  }),
});

/**
 * What the page shows besides the stream: names, venues with their state, and the spreads before
 * the first pill of its socket. From memory; with a demo it needs no key, like the demo's tickets.
 */
export function marketRoute(deps: {
  readonly lastSpreads: LastSpreads;
  readonly markets: Pick<Markets, 'at' | 'moment' | 'venueOf'>;
  readonly hasDemo: boolean;
}): RouteOptions {
  const { lastSpreads, markets, hasDemo } = deps;
  const stateOf = (venue: TradingVenue) => {
    const now = Date.now();
    const { state, opensMs } = markets.at(venue, now);
    const untilMs = venue === 'ALWAYS' ? undefined : markets.moment(venue, now).until;
    return {
      name: VENUE_NAMES[venue],
      state,
      opens_at: timeOf(opensMs),
      changes_at: timeOf(untilMs),
    };
  };
  const route = defineRoute({
    method: 'GET',
    url: '/console/market',
    tag: 'service',
    summary: 'Names, venues and last spreads of symbols, for the web page',
    access: hasDemo ? OPEN_LIMITED : metered('symbols'),
    query: Query,
    answers: {},
    handle({ query }, reply) {
      const symbols = [...new Set(query.symbols.split(','))];
      const venueOf = new Map(symbols.map((symbol) => [symbol, markets.venueOf(symbol)]));
      const venues = [...new Set(venueOf.values())].filter((venue) => venue !== undefined);
      const entries = symbols.map((symbol) => {
        const venue = venueOf.get(symbol);
        const last = lastSpreads(symbol).slice(-SPREADS_MAX);
        const spreads = last.map(({ receivedAt, spread }) => [receivedAt, spread]);
        const name = listingName(symbol, venue) ?? null;
        return [symbol, { name, venue: venue ?? null, spreads }] as const;
      });
      reply.header('cache-control', 'no-store');
      return {
        symbols: Object.fromEntries(entries),
        venues: Object.fromEntries(venues.map((venue) => [venue, stateOf(venue)])),
      };
    },
  });
  return { ...route, schema: { ...route.schema, hide: true } };
}

function timeOf(ms: number | undefined): string | null {
  return ms === undefined ? null : formatTimestamp(Math.round(ms * 1_000));
}
