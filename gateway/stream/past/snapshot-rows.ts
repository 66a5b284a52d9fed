import { isTestSymbol } from '../../../schemas/pill.ts';
import { EVERY_SYMBOL, passes, type Subscription } from '../live/subscription.ts';
import type { Board, Row } from './board.ts';

/**
 * The rows of a snapshot: what the subscription would have let through. `*` leaves out test
 * symbols, and those that the connection has named, since they follow their own subscription.
 */
export function chooseRows(
  board: Board,
  symbols: readonly string[],
  named: ReadonlyMap<string, Subscription>,
  subscription: Subscription,
): Row[] {
  const wants = (row: Row) =>
    (!row.backfill || subscription.backfill) && passes(subscription.filter, row.pill);
  const rows: Row[] = [];
  for (const symbol of symbols) {
    if (symbol === EVERY_SYMBOL) {
      for (const row of board.rows()) {
        const own = row.pill.symbol;
        if (!isTestSymbol(own) && !named.has(own) && wants(row)) rows.push(row);
      }
      continue;
    }
    const row = board.get(symbol);
    if (row !== undefined && wants(row)) rows.push(row);
  }
  return rows;
}
