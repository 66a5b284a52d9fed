import { Type } from 'typebox';
import { integers, numbers, numbersOrNull, texts } from '../server/example.ts';
import { roundFigures } from '../server/figures.ts';
import { choice, whole } from '../server/schemas.ts';
import type { Window } from '../server/time-range.ts';
import type { AnalyticsDeps, AnalyticsQuery } from './analytics-query.ts';
import { WINDOW_ARGUMENTS, windowParameters } from './window-parameters.ts';

const WINDOWS_S = { '5m': 300, '15m': 900, '1h': 3_600, '4h': 14_400, '1d': 86_400 } as const;
type WindowName = keyof typeof WINDOWS_S;

/** Sort keys, largest first. */
const BY = { abs_change: 'abs(change)', change: 'change', abs_z: 'abs(z)' } as const;

const PARAMETERS = {
  window: choice(
    Object.keys(WINDOWS_S) as WindowName[],
    'Length of the window, which ends now; `1h` by default',
  ),
  by: choice(
    Object.keys(BY) as (keyof typeof BY)[],
    'Sort key, largest first; `abs_change` by default',
  ),
  min_count: whole(2, 1_000_000, 30, 'Symbols with fewer pills in the window are left out'),
  limit: whole(1, 100, 20, 'Symbols in the answer'),
};

type MoverRow = {
  readonly symbol: string;
  readonly now: number;
  readonly then: number;
  readonly change: number;
  readonly z: number | null;
  readonly count: number;
};

const DEFINITION =
  'now = last spread of the window, then = first of it, z = (now - mean) / standard deviation of it';

/** `GET /api/analytics/movers`. */
export function moversQuery({ reader }: AnalyticsDeps): AnalyticsQuery<
  typeof PARAMETERS,
  {
    readonly name: WindowName;
    readonly by: keyof typeof BY;
    readonly minCount: number;
    readonly limit: number;
    readonly window: Window;
  }
> {
  return {
    name: 'movers',
    summary: 'Symbols whose spread changed most',
    description:
      `All symbols except test symbols; ${DEFINITION} (of a sample; null if the spread does not ` +
      'vary).',
    parameters: PARAMETERS,
    answer: {
      ...texts({ window: '1h', by: 'abs_change', definition: DEFINITION }),
      ...integers({ min_count: 30 }),
      data: Type.Array(
        Type.Object({
          ...texts({ symbol: '7203.T' }),
          // biome-ignore lint/suspicious/noThenProperty: a field of the contract; it is a number
          ...numbers({ now: 0.14, then: 0.09, change: 0.05 }),
          ...numbersOrNull({ z: 2.4 }),
          ...integers({ count: 3_600 }),
        }),
      ),
    },
    parse(query, now) {
      const { window: name = '1h', by = 'abs_change', limit = 20 } = query;
      const window = { since: now - WINDOWS_S[name] * 1e6, until: now };
      return { ok: true, value: { name, by, minCount: query.min_count ?? 30, limit, window } };
    },
    narrower({ name }) {
      const names = Object.keys(WINDOWS_S);
      const shorter = names[names.indexOf(name) - 1];
      if (shorter === undefined)
        return { hint: 'There is no shorter window: request the summary of single symbols.' };
      return { hint: 'A shorter window may fit.', try: { window: shorter } };
    },
    async run({ name, by, minCount, limit, window }) {
      const found = await reader.select<MoverRow>(
        `SELECT symbol, now, then, change, z, count
         FROM movers(min_count = {min:UInt64}, ${WINDOW_ARGUMENTS})
         ORDER BY ${BY[by]} DESC NULLS LAST, symbol LIMIT {limit:UInt32}`,
        { min: minCount, limit, ...windowParameters(window) },
      );
      const rows = found.map((row) => roundFigures(row, { change: 'spread', z: 'z' }));
      return {
        body: { window: name, by, min_count: minCount, definition: DEFINITION, data: rows },
        table: { columns: ['symbol', 'now', 'then', 'change', 'z', 'count'], rows },
      };
    },
  };
}
