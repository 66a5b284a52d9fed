import { Type } from 'typebox';
import type { LatestRow } from '../../../lib/latest-table.ts';
import type { Markets } from '../../../lib/signal/markets.ts';
import { isTestSymbol, SYMBOL_PATTERN } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { refuse } from '../../http/refuse.ts';
import { metered } from '../access-rule.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { endpoint } from '../endpoint.ts';
import { orNull } from '../or-null.ts';
import type { LatestView } from '../view.ts';
import type { LogMemory } from './log-memory.ts';
import type { Store } from './store.ts';

const PAGE_MAX = 500;
const PAGE_DEFAULT = 100;

const SymbolSchema = Type.Object({
  symbol: Type.String(),
  venue: orNull(Type.String({ description: 'ISO 10383, `FX` or `ALWAYS`; null: not known' })),
  first_at: orNull(
    Type.String({ description: 'First timestamp; null while history does not answer' }),
  ),
  last: Type.Object({
    cursor: Type.String(),
    timestamp: Type.String(),
    received_at: Type.String(),
  }),
  cadence_ms: orNull(
    Type.Integer({ description: 'Median of its last intervals; null: too few of them are known' }),
  ),
});

const EXAMPLE = {
  data: [
    {
      ...{ symbol: '7203.T', venue: 'XTKS', first_at: '2026-11-01T00:00:00.000000Z' },
      last: {
        ...{ cursor: '3-132', timestamp: '2026-11-20T01:02:03.004000Z' },
        received_at: '2026-11-20T01:02:03.011000Z',
      },
      cadence_ms: 980,
    },
  ],
  next: null,
};

export interface SymbolsOptions {
  readonly view: LatestView;
  readonly memory: LogMemory;
  readonly store: Store;
  readonly markets: Markets;
}

/** `GET /api/symbols`: what exists. Test symbols are left out: who wants them names them. */
export function symbolsEndpoint({ view, memory, store, markets }: SymbolsOptions) {
  const page = createPages(view);
  return endpoint({
    method: 'GET',
    url: '/api/symbols',
    tag: 'market',
    summary: 'The symbols that exist: venue, first and last pill, usual cadence',
    description: 'By name. `next` is the `after` of the next page; null at the end.',
    access: metered('symbols'),
    query: Type.Object(
      {
        after: Type.Optional(
          Type.String({ pattern: SYMBOL_PATTERN, description: 'Symbols after this name' }),
        ),
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: PAGE_MAX,
            description: `${PAGE_DEFAULT} by default`,
          }),
        ),
      },
      { additionalProperties: false },
    ),
    answers: {
      200: {
        description: 'A page of symbols.',
        schema: Type.Object({
          data: Type.Array(SymbolSchema),
          next: orNull(Type.String({ description: '`after` of the next page' })),
        }),
        example: EXAMPLE,
      },
    },
    problems: ['not_ready'],
    async handle({ query }, reply) {
      if (!view.isReady()) return refuse(reply, 'not_ready', { retry_after_s: 1 });
      const { rows, hasMore } = page(query.after, query.limit ?? PAGE_DEFAULT);
      const firsts = await firstsOf(rows, store);
      const data = rows.map(({ partition, pill }) => {
        const { symbol, offset, timestamp, received_at } = pill;
        const first = firsts.get(symbol);
        const cadence = memory.windows.peek(symbol)?.cadenceMs();
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
      return { data, next: hasMore ? data.at(-1)!.symbol : null };
    },
  });
}

async function firstsOf(rows: readonly LatestRow[], store: Store): Promise<Map<string, Micros>> {
  try {
    return await store.firsts(rows.map(({ pill }) => pill.symbol));
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    return new Map();
  }
}

/** Names in order are kept until there is a new one: sorting 100,000 takes 50 ms. */
function createPages(view: LatestView) {
  let names: string[] = [];
  let known = -1;
  return (after: string | undefined, limit: number) => {
    if (view.size() !== known) {
      known = view.size();
      names = [...view.rows()].map(({ pill }) => pill.symbol).filter((name) => !isTestSymbol(name));
      names.sort();
    }
    let low = 0;
    let high = after === undefined ? 0 : names.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (names[middle]! <= after!) low = middle + 1;
      else high = middle;
    }
    const rows = names.slice(low, low + limit).flatMap((name) => view.get(name) ?? []);
    return { rows, hasMore: low + limit < names.length };
  };
}
