import type { Pill } from './pill.ts';

/**
 * Conditions on the content of a pill, as subscriptions of streams and webhook endpoints set them.
 * Which symbols and whether backfill is included is not part of it: a stream lets a named symbol
 * take precedence over `*`, and counts only pills that its filter excludes.
 */
export interface PillFilter {
  readonly minConfidence: number | undefined;
  /** Bounds of the gross spread in percent; all bounds are inclusive. */
  readonly minSpread: number | undefined;
  readonly maxSpread: number | undefined;
  /** Market states; empty = all. */
  readonly states: readonly string[];
}

/** The SDK, a package of its own, repeats this rule to fill gaps. */
export function passesFilter(
  { minConfidence, minSpread, maxSpread, states }: PillFilter,
  pill: Pick<Pill, 'gross_spread_percent' | 'market_state' | 'confidence'>,
): boolean {
  if (minConfidence !== undefined && pill.confidence < minConfidence) return false;
  if (minSpread !== undefined && pill.gross_spread_percent < minSpread) return false;
  if (maxSpread !== undefined && pill.gross_spread_percent > maxSpread) return false;
  return states.length === 0 || states.includes(pill.market_state);
}

/** Whether no pill can pass, because the upper bound is below the lower one. */
export function isRangeBackwards({
  minSpread = Number.NEGATIVE_INFINITY,
  maxSpread = Number.POSITIVE_INFINITY,
}: Partial<Pick<PillFilter, 'minSpread' | 'maxSpread'>>): boolean {
  return minSpread > maxSpread;
}
