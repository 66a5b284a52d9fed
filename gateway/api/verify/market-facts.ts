import { openMsBetween } from '../../../domain/market/calendars/calendar.ts';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import { VERIFY_LIMITS } from './limits.ts';

const DAY_MS = 86_400_000;

export type MarketFacts = ReturnType<typeof marketFacts>;

/**
 * Looks up a symbol's market, now and at the time of its pill. Times are Unix ms.
 * @param pillMs timestamp of the pill; without one, `atPill` is undefined
 * @returns `basis`: the source of the state; `moment`: undefined without a calendar;
 *   `aroundPill`: also the states just before and after the pill, since clocks differ;
 *   `openMs`: for how long the market is open on this UTC day, all day
 *   without a calendar
 */
export function marketFacts(
  markets: Markets,
  symbol: string,
  nowMs: number,
  pillMs: number | undefined,
) {
  const venue = markets.venueOf(symbol);
  const now = markets.of(symbol, nowMs);
  const { boundaryMs } = VERIFY_LIMITS;
  const around = pillMs === undefined ? [] : [pillMs, pillMs - boundaryMs, pillMs + boundaryMs];
  if (venue === undefined || venue === 'ALWAYS') {
    const isOpen = venue === 'ALWAYS' || isTestSymbol(symbol);
    const aroundPill = around.map(() => now.state);
    const basis = isOpen ? 'always_open' : 'none';
    const rest = { moment: undefined, atPill: aroundPill[0], aroundPill, openMs: DAY_MS };
    return { venue, basis, now, ...rest };
  }
  const aroundPill = around.map((ms) => markets.moment(venue, ms).state);
  const moment = markets.moment(venue, nowMs);
  const dayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const openMs = openMsBetween(markets.calendar(venue), dayMs, dayMs + DAY_MS);
  return { venue, basis: 'calendar', moment, now, atPill: aroundPill[0], aroundPill, openMs };
}
