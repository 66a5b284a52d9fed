import type { Pill } from './pill.ts';
import type { Subscription } from './subscribe.ts';

/**
 * Whether a subscription would have brought a pill. History has all of them; who fills a gap from
 * it must get what the stream left out, but no backfill that was not asked for, nor late pills in
 * mode `latest`, which replace nothing.
 */
export function wants({ filter, backfill, mode }: Subscription, pill: Pill): boolean {
  if (pill.backfill === true && !backfill) return false;
  if (pill.late === true && mode === 'latest') return false;
  if (filter === undefined) return true;
  const { min_confidence = 0, min_spread, max_spread, states } = filter;
  return (
    pill.confidence >= min_confidence &&
    pill.gross_spread_percent >= (min_spread ?? Number.NEGATIVE_INFINITY) &&
    pill.gross_spread_percent <= (max_spread ?? Number.POSITIVE_INFINITY) &&
    (states === undefined || states.includes(pill.market_state))
  );
}
