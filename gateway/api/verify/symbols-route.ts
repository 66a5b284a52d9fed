import { Type } from 'typebox';
import { TRADING_VENUES, type TradingVenue } from '../../../domain/market/calendars/venue-rules.ts';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { PUBLIC_PILL_EXAMPLE } from '../../../schemas/public-pill.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError } from '../clickhouse/query-error.ts';
import type { LatestView } from '../pills/latest-view.ts';
import { metered } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';
import { texts } from '../server/example.ts';
import { nextPage } from '../server/next-page.ts';
import { choice, Next, orNull, strict, symbolOf, whole } from '../server/schemas.ts';
import type { LogCache } from './log-cache.ts';
import { countUpTo } from './spread.ts';
import type { PillStore } from './stored-pills.ts';

const PAGE_MAX = 500;
const PAGE_DEFAULT = 100;
const NO_VENUE = 'none';

const { cursor, timestamp, received_at } = PUBLIC_PILL_EXAMPLE;
const SymbolSchema = Type.Object({
  ...texts({ symbol: '7203.T' }),
  venue: orNull(
    Type.String({ examples: ['XTKS'] }),
    'ISO 10383, `FX` or `ALWAYS`; null if unknown',
  ),
  first_at: orNull(
    Type.String({ examples: ['2026-11-01T00:00:00.000000Z'] }),
    'First timestamp; null while history is unavailable',
  ),
  last: Type.Object(texts({ cursor, timestamp, received_at })),
  cadence_ms: orNull(
    Type.Integer({ examples: [980] }),
    'Median of the last intervals; null if too few are known',
  ),
});

/** `GET /api/symbols`: all symbols except test symbols. */
export function symbolsEndpoint(deps: {
  readonly view: LatestView;
  readonly cache: Pick<LogCache, 'windows'>;
  readonly store: PillStore;
  readonly markets: Markets;
}) {
  const { view, cache, store, markets } = deps;
  const pageAfter = createPages(view, markets.venueOf);
  return defineRoute({
    method: 'GET',
    url: '/api/symbols',
    tag: 'market',
    summary: 'All symbols, or those of a venue: venue, first and last pill, usual cadence',
    description: 'Symbols by name.',
    access: metered('symbols'),
    query: strict({
      venue: choice(
        [...TRADING_VENUES, NO_VENUE],
        `Symbols of this venue; \`${NO_VENUE}\`: symbols whose venue is unknown; all by default`,
      ),
      after: Type.Optional(symbolOf('Symbols after this name')),
      limit: whole(1, PAGE_MAX, PAGE_DEFAULT, 'Symbols per page'),
    }),
    answers: {
      200: {
        description: 'A page of symbols.',
        schema: Type.Object({
          data: Type.Array(SymbolSchema),
          next: Next,
        }),
      },
    },
    problems: ['not_ready'],
    async handle({ query, url }, reply) {
      if (!view.isReady()) return refuse(reply, 'not_ready', { retry_after_s: 1 });
      const { rows, hasMore } = pageAfter(query);
      const firsts = await store.firsts(rows.map(({ pill }) => pill.symbol)).catch(noneIfFailed);
      const data = rows.map(({ partition, pill }) => {
        const { symbol, offset, timestamp, received_at } = pill;
        const first = firsts.get(symbol);
        const cadence = cache.windows.peek(symbol)?.cadenceMs();
        return {
          symbol,
          venue: markets.venueOf(symbol) ?? null,
          first_at: first === undefined ? null : formatTimestamp(Math.min(first, timestamp)),
          last: {
            cursor: formatCursor(partition, offset),
            timestamp: formatTimestamp(timestamp),
            received_at: formatTimestamp(received_at),
          },
          cadence_ms: cadence === undefined ? null : Math.round(cadence),
        };
      });
      reply.header('cache-control', 'private, no-cache');
      return { data, next: hasMore ? nextPage(url, { after: data.at(-1)!.symbol }) : null };
    },
  });
}

function noneIfFailed(error: unknown): Map<string, Micros> {
  if (error instanceof QueryError) return new Map();
  throw error;
}

interface SymbolsQuery {
  readonly venue?: TradingVenue | typeof NO_VENUE;
  readonly after?: string;
  readonly limit?: number;
}

/**
 * Keeps the sorted names, in all and by venue, until there is a new one: sorting 100,000 takes
 * 50 ms.
 */
function createPages(view: LatestView, venueOf: Markets['venueOf']) {
  let all: string[] = [];
  const byVenue = new Map<SymbolsQuery['venue'], string[]>();
  let size = -1;
  return ({ venue, after, limit = PAGE_DEFAULT }: SymbolsQuery) => {
    if (view.size() !== size) {
      size = view.size();
      all = [...view.rows()].map(({ pill }) => pill.symbol).filter((name) => !isTestSymbol(name));
      all.sort();
      byVenue.clear();
    }
    const isThere = (name: string) => venue === undefined || venue === (venueOf(name) ?? NO_VENUE);
    const names = byVenue.get(venue) ?? all.filter(isThere);
    byVenue.set(venue, names);
    const from = after === undefined ? 0 : countUpTo(names, after);
    const rows = names.slice(from, from + limit).flatMap((name) => view.get(name) ?? []);
    return { rows, hasMore: from + limit < names.length };
  };
}
