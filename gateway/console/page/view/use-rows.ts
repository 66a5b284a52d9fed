import { useRef } from 'preact/hooks';
import { type Order, sortRows } from '../market/order.ts';
import type { createMarket, Row } from '../market/symbol-rows.ts';

/** Rows move no more often than this, unless the user changes order or filter. */
const SETTLED_MS = 1_000;

/** The rows to show. Figures change at once, the order once per second: the eye must follow. */
export function useRows(
  { rows, venues }: Pick<ReturnType<typeof createMarket>, 'rows' | 'venues'>,
  order: Order,
  filter: string,
): readonly Row[] {
  const { size } = rows;
  const atMs = performance.now();
  const sorted = () => ({
    rows: sortRows(rows.values(), venues, order, filter),
    order,
    filter,
    size,
    atMs,
  });
  const kept = useRef<ReturnType<typeof sorted>>(null);
  const was = kept.current;
  const isSame = was?.order === order && was.filter === filter && was.size === size;
  if (!isSame || atMs - was.atMs >= SETTLED_MS) kept.current = sorted();
  return kept.current!.rows;
}
