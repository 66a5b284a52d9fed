import { useRef } from 'preact/hooks';
import type { Row } from '../market/market.ts';
import { arrange, type Order } from '../market/order.ts';

/** Lines change places no more often than this, unless somebody asked for it. */
const SETTLED_MS = 1_000;

interface Kept {
  readonly rows: readonly Row[];
  readonly order: Order;
  readonly filter: string;
  readonly size: number;
  readonly atMs: number;
}

/** The lines to show: their figures at once, their order once a second, so that eyes can follow. */
export function useRows(
  rows: ReadonlyMap<string, Row>,
  order: Order,
  filter: string,
): readonly Row[] {
  const kept = useRef<Kept | undefined>(undefined);
  const { size } = rows;
  const now = performance.now();
  const was = kept.current;
  const isSame = was?.order === order && was.filter === filter && was.size === size;
  if (!isSame || now - was!.atMs >= SETTLED_MS) {
    kept.current = { rows: arrange(rows.values(), order, filter), order, filter, size, atMs: now };
  }
  return kept.current!.rows;
}
