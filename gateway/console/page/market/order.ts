import type { Row } from './market.ts';

/** Columns that rows are put in order by. */
export const SORTS = ['symbol', 'spread', 'change', 'confidence', 'state', 'age'] as const;
export type Sort = (typeof SORTS)[number];

export interface Order {
  readonly by: Sort;
  readonly isDescending: boolean;
}

/** The rows that match a text, in order; equal ones by symbol. */
export function arrange(rows: Iterable<Row>, order: Order, filter: string): Row[] {
  const wanted = filter.trim().toLowerCase();
  const matching = [...rows].filter(
    ({ symbol, state }) =>
      wanted === '' ||
      symbol.toLowerCase().includes(wanted) ||
      state.toLowerCase().includes(wanted),
  );
  const compare = COMPARE[order.by];
  const sign = order.isDescending ? -1 : 1;
  return matching.sort((a, b) => sign * compare(a, b) || bySymbol(a, b));
}

/** What a click on a column does: numbers begin with the largest, names with the first. */
export function nextOrder(order: Order, by: Sort): Order {
  if (order.by === by) return { by, isDescending: !order.isDescending };
  return { by, isDescending: by === 'spread' || by === 'change' || by === 'confidence' };
}

type Compare = (a: Row, b: Row) => number;

/** By code unit, as the platform lists symbols. */
const bySymbol: Compare = (a, b) => (a.symbol < b.symbol ? -1 : a.symbol > b.symbol ? 1 : 0);

const COMPARE: Readonly<Record<Sort, Compare>> = {
  symbol: bySymbol,
  spread: (a, b) => a.spread - b.spread,
  change: (a, b) => (a.change ?? 0) - (b.change ?? 0),
  confidence: (a, b) => a.confidence - b.confidence,
  state: (a, b) => (a.state < b.state ? -1 : a.state > b.state ? 1 : 0),
  age: (a, b) => b.atMs - a.atMs,
};
