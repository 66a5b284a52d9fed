import type { Row, Venue } from './symbol-rows.ts';

/** Columns by which rows can be sorted. */
export const SORTS = ['symbol', 'spread', 'change', 'confidence', 'state', 'age'] as const;
export type Sort = (typeof SORTS)[number];

export interface Order {
  readonly by: Sort;
  readonly isDescending: boolean;
}

/** The order of a page until its user chooses another. */
export const NAME_ORDER: Order = { by: 'symbol', isDescending: false };

/**
 * The rows that match the filter text by symbol, name, venue or state, sorted; equal ones by symbol.
 * Rows without a value are last in both directions.
 */
export function sortRows(
  rows: Iterable<Row>,
  venues: ReadonlyMap<string, Venue>,
  order: Order,
  filter: string,
): Row[] {
  const wanted = filter.trim().toLowerCase();
  const matches = (text = '') => text.toLowerCase().includes(wanted);
  const venueOf = ({ venue = '' }: Row) => venues.get(venue)?.name;
  const matching = [...rows].filter(
    (row) =>
      matches(row.symbol) || matches(row.state) || matches(row.name) || matches(venueOf(row)),
  );
  const compare = COMPARE[order.by];
  const sign = order.isDescending ? -1 : 1;
  const lacks = (row: Row) => Number(order.by === 'change' && row.change === undefined);
  return matching.sort(
    (a, b) => lacks(a) - lacks(b) || sign * compare(a, b) || byText(a.symbol, b.symbol),
  );
}

/** The order after a click on a column: numbers begin with the largest, names with the first. */
export function nextOrder(order: Order, by: Sort): Order {
  if (order.by === by) return { by, isDescending: !order.isDescending };
  return { by, isDescending: by === 'spread' || by === 'change' || by === 'confidence' };
}

/** By code unit, as the platform lists symbols. */
const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

const COMPARE: Readonly<Record<Sort, (a: Row, b: Row) => number>> = {
  symbol: (a, b) => byText(a.symbol, b.symbol),
  spread: (a, b) => a.spread - b.spread,
  change: (a, b) => (a.change ?? 0) - (b.change ?? 0),
  confidence: (a, b) => a.confidence - b.confidence,
  state: (a, b) => byText(a.venue ?? '', b.venue ?? '') || byText(a.state, b.state),
  age: (a, b) => b.atMs - a.atMs,
};
