import { Type } from 'typebox';
import { integers, numbers, texts } from '../server/example.ts';
import { roundFigure } from '../server/figures.ts';
import { whole } from '../server/schemas.ts';
import type { AnalyticsDeps } from './analytics-query.ts';
import { RANGES } from './limits.ts';
import { symbolQuery } from './symbol-query.ts';
import { WINDOW_ARGUMENTS } from './window-parameters.ts';

const HOLD_S = 60;

/** `GET /api/analytics/states`. */
export function statesQuery({ reader }: AnalyticsDeps) {
  return symbolQuery({
    name: 'states',
    summary: 'How long a symbol was in each market_state',
    description:
      'A state holds from its pill to the next pill of the symbol, at most `max_hold_s`. Time that ' +
      'no pill covers is `unobserved`. A spell is a period without interruption. The shares add up ' +
      'to 1.',
    range: () => RANGES.states,
    parameters: {
      max_hold_s: whole(1, 3_600, HOLD_S, 'How long a state holds if no other pill follows, in s'),
    },
    answer: {
      ...integers({ max_hold_s: HOLD_S }),
      data: Type.Array(
        Type.Object({
          ...texts({ market_state: 'open' }),
          ...numbers({ seconds: 16_200.5, share: 0.82 }),
          ...integers({ spells: 2, pills: 17_000 }),
        }),
      ),
    },
    async run({ window, parameters }, { max_hold_s = HOLD_S }) {
      const rows = await reader.select<{ seconds: number }>(
        `SELECT * FROM states(symbol = {symbol:String}, max_hold_us = {hold:UInt64},
           ${WINDOW_ARGUMENTS})
         ORDER BY seconds DESC, market_state`,
        { ...parameters, hold: max_hold_s * 1e6 },
      );
      const totalS = (window.until - window.since) / 1e6;
      const data = rows.map((row) => ({
        ...row,
        seconds: roundFigure('seconds', row.seconds),
        share: roundFigure('share', row.seconds / totalS),
      }));
      const columns = ['market_state', 'seconds', 'share', 'spells', 'pills'];
      return { body: { max_hold_s, data }, table: { columns, rows: data } };
    },
  });
}
