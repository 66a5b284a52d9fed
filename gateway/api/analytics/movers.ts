import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import type { Window } from '../time-range.ts';
import { whole } from './parameters.ts';
import { NumberOrNull, type Question, type Sources } from './question.ts';

const WINDOWS_S = { '5m': 300, '15m': 900, '1h': 3_600, '4h': 14_400, '1d': 86_400 } as const;
type WindowName = keyof typeof WINDOWS_S;

/** How rows are ordered, the largest first. */
const BY = {
  abs_change: 'abs(change)',
  change: 'change',
  abs_z: 'abs(z)',
} as const;

const QUERY = {
  window: Type.Optional(
    Type.Enum(Object.keys(WINDOWS_S) as WindowName[], {
      description: 'How long back from now; `1h` by default',
    }),
  ),
  by: Type.Optional(
    Type.Enum(Object.keys(BY) as (keyof typeof BY)[], {
      description: 'What the largest of comes first; `abs_change` by default',
    }),
  ),
  min_count: whole(2, 1_000_000, 30, 'Symbols with fewer pills in the window are left out'),
  limit: whole(1, 100, 20, 'Symbols that are told'),
};

interface Asked {
  readonly name: WindowName;
  readonly by: keyof typeof BY;
  readonly minCount: number;
  readonly limit: number;
  readonly window: Window;
}

const DEFINITION =
  'now = last spread of the window, then = first of it, z = (now - mean) / standard deviation of it';

/** `GET /api/analytics/movers`. */
export function moversQuestion({ desk }: Sources): Question<typeof QUERY, Asked> {
  return {
    name: 'movers',
    summary: 'Whose spread changed most',
    description: `Over all symbols but test symbols; ${DEFINITION} (of a sample; null where nothing varies).`,
    query: QUERY,
    answer: {
      window: Type.String(),
      by: Type.String(),
      min_count: Type.Integer(),
      definition: Type.String(),
      data: Type.Array(
        Type.Object({
          symbol: Type.String(),
          now: Type.Number(),
          // biome-ignore lint/suspicious/noThenProperty: a word of the contract; it is a number
          then: Type.Number(),
          change: Type.Number(),
          z: NumberOrNull,
          count: Type.Integer(),
        }),
      ),
    },
    csvExample: 'symbol,now,then,change,z,count\r\n7203.T,0.14,0.09,0.05,2.4,3600\r\n',
    example: {
      window: '1h',
      by: 'abs_change',
      min_count: 30,
      definition: DEFINITION,
      data: [
        // biome-ignore lint/suspicious/noThenProperty: a word of the contract; it is a number
        { symbol: '7203.T', now: 0.14, then: 0.09, change: 0.05, z: 2.4, count: 3_600 },
      ],
    },
    parse(query, now) {
      const {
        window: name = '1h',
        by = 'abs_change',
        min_count: minCount = 30,
        limit = 20,
      } = query;
      const window = { since: now - WINDOWS_S[name] * 1e6, until: now };
      return { ok: true, value: { name, by, minCount, limit, window } };
    },
    less({ name }) {
      const names = Object.keys(WINDOWS_S);
      const shorter = names[names.indexOf(name) - 1];
      if (shorter !== undefined)
        return { hint: 'A shorter window may fit.', try: { window: shorter } };
      return { hint: 'There is no shorter window: ask for the summary of single symbols.' };
    },
    async find({ name, by, minCount, limit, window }) {
      const rows = await desk.ask<object & Readonly<Record<string, unknown>>>(
        `SELECT symbol, now, then, change, z, count FROM movers(min_count = {min:UInt64},
           since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})
         ORDER BY ${BY[by]} DESC NULLS LAST, symbol LIMIT {limit:UInt32}`,
        {
          min: minCount,
          since: decimalSeconds(window.since),
          until: decimalSeconds(window.until),
          limit,
        },
      );
      return {
        body: { window: name, by, min_count: minCount, definition: DEFINITION, data: rows },
        table: { columns: ['symbol', 'now', 'then', 'change', 'z', 'count'], rows },
      };
    },
  };
}
