import { isTestSymbol, type Pill } from '../../schemas/pill.ts';
import type { PillFilter } from './endpoint.ts';

type Judged = Pick<Pill, 'symbol' | 'gross_spread_percent' | 'market_state' | 'confidence'> & {
  readonly backfill: boolean;
};

/** Whether a filter names the symbol of a pill; test symbols must be named one by one. */
export function wantsSymbol({ symbols }: Pick<PillFilter, 'symbols'>, symbol: string): boolean {
  return symbols.length === 0 ? !isTestSymbol(symbol) : symbols.includes(symbol);
}

/** Whether a filter lets a pill pass. `symbols` is not looked at: see `wantsSymbol`. */
export function matches(filter: PillFilter, pill: Judged): boolean {
  const { minConfidence, minSpread, maxSpread, states, backfill } = filter;
  if (pill.backfill && !backfill) return false;
  if (minConfidence !== undefined && pill.confidence < minConfidence) return false;
  if (minSpread !== undefined && pill.gross_spread_percent < minSpread) return false;
  if (maxSpread !== undefined && pill.gross_spread_percent > maxSpread) return false;
  return states.length === 0 || states.includes(pill.market_state);
}
