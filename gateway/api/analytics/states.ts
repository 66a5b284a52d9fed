import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import { parseWindow, toldWindow, type Window } from '../time-range.ts';
import { RANGES } from './limits.ts';
import { SYMBOL, WINDOW, WINDOW_EXAMPLE, WindowSchema, whole } from './parameters.ts';
import { lessTime, type Question, type Sources } from './question.ts';

interface Row {
  readonly market_state: string;
  readonly seconds: number;
  readonly spells: number;
  readonly pills: number;
}

const QUERY = {
  symbol: SYMBOL,
  ...WINDOW,
  max_hold_s: whole(1, 3_600, 60, 'How long a pill is believed when no other follows, in s'),
};

/** `GET /api/analytics/states`. */
export function statesQuestion({
  desk,
}: Sources): Question<
  typeof QUERY,
  { readonly symbol: string; readonly holdS: number; readonly window: Window }
> {
  return {
    name: 'states',
    summary: 'How long a symbol was in which market_state',
    description:
      'A state holds from its pill to the next one of the symbol, at most `max_hold_s`; what no pill ' +
      'covers is `unobserved`. A spell is a time without interruption. The shares add up to 1.',
    query: QUERY,
    answer: {
      symbol: Type.String(),
      window: WindowSchema,
      max_hold_s: Type.Integer(),
      data: Type.Array(
        Type.Object({
          market_state: Type.String(),
          seconds: Type.Number(),
          share: Type.Number(),
          spells: Type.Integer(),
          pills: Type.Integer(),
        }),
      ),
    },
    csvExample: 'market_state,seconds,share,spells,pills\r\nopen,16200.5,0.82,2,17000\r\n',
    example: {
      symbol: '7203.T',
      window: WINDOW_EXAMPLE,
      max_hold_s: 60,
      data: [
        { market_state: 'open', seconds: 16_200.5, share: 0.82, spells: 2, pills: 17_000 },
        { market_state: 'unobserved', seconds: 3_600, share: 0.18, spells: 1, pills: 0 },
      ],
    },
    parse(query, now) {
      const window = parseWindow(query, RANGES.states, now);
      if (!window.ok) return window;
      const { symbol, max_hold_s: holdS = 60 } = query;
      return { ok: true, value: { symbol, holdS, window: window.value } };
    },
    less: ({ window }) => lessTime(window),
    async find({ symbol, holdS, window }) {
      const rows = await desk.ask<Row>(
        `SELECT * FROM states(symbol = {symbol:String}, max_hold_us = {hold:UInt64},
           since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})
         ORDER BY seconds DESC, market_state`,
        {
          symbol,
          hold: holdS * 1e6,
          since: decimalSeconds(window.since),
          until: decimalSeconds(window.until),
        },
      );
      const totalS = (window.until - window.since) / 1e6;
      const data = rows.map((row) => ({ ...row, share: row.seconds / totalS }));
      return {
        body: { symbol, window: toldWindow(window), max_hold_s: holdS, data },
        table: { columns: ['market_state', 'seconds', 'share', 'spells', 'pills'], rows: data },
      };
    },
  };
}
