import type { Pill } from '../../../schemas/pill.ts';

/** `all`: every pill, or the connection ends; `latest`: a slow reader gets the newest only. */
export type Mode = 'all' | 'latest';

export interface Filter {
  readonly minConfidence: number;
  readonly minSpread: number;
  readonly maxSpread: number;
  /** Labels that pass; undefined passes all. */
  readonly states: ReadonlySet<string> | undefined;
}

/** What a connection wants of one symbol, or of `*`. */
export interface Subscription {
  readonly mode: Mode;
  readonly backfill: boolean;
  readonly filter: Filter | undefined;
}

/** The name that stands for all symbols but test ones. */
export const EVERY_SYMBOL = '*';

/** Whether a filter lets a pill through; its bounds are inclusive. */
export function passes(filter: Filter | undefined, pill: Pill): boolean {
  if (filter === undefined) return true;
  return (
    pill.confidence >= filter.minConfidence &&
    pill.gross_spread_percent >= filter.minSpread &&
    pill.gross_spread_percent <= filter.maxSpread &&
    (filter.states === undefined || filter.states.has(pill.market_state))
  );
}
