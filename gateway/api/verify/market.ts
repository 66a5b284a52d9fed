import type { MarketMoment, MarketState } from '../../../lib/calendar/calendar.ts';
import type { Place } from '../../../lib/calendar/venue-rules.ts';
import type { Markets } from '../../../lib/signal/markets.ts';
import type { MarketNow } from '../../../lib/signal/silence.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import { VERIFY_LIMITS } from './limits.ts';

/** The market of a symbol: now, and when its pill was made. Times are Unix ms. */
export interface MarketFacts {
  readonly venue: Place | undefined;
  /** What it is known from. */
  readonly basis: 'calendar' | 'always_open' | 'none';
  /** Undefined without a calendar. */
  readonly moment: MarketMoment | undefined;
  readonly now: MarketNow;
  /** At the pill's timestamp; undefined without a pill. */
  readonly atPill: MarketState | undefined;
  /** And just before and after it: clocks differ. Empty without a pill. */
  readonly aroundPill: readonly MarketState[];
}

/** Looks up a symbol's market. @param pillMs time of its pill */
export function marketFacts(
  markets: Markets,
  symbol: string,
  nowMs: number,
  pillMs: number | undefined,
): MarketFacts {
  const place = markets.venueOf(symbol);
  const now = markets.of(symbol, nowMs);
  if (place === undefined || place === 'ALWAYS') {
    const isOpen = place === 'ALWAYS' || isTestSymbol(symbol);
    const atPill = pillMs === undefined ? undefined : now.state;
    return {
      ...{ venue: place, now, atPill, moment: undefined },
      basis: isOpen ? 'always_open' : 'none',
      aroundPill: atPill === undefined ? [] : [atPill],
    };
  }
  const stateAt = (tMs: number) => markets.moment(place, tMs).state;
  const { boundaryMs } = VERIFY_LIMITS;
  return {
    ...{ venue: place, now, basis: 'calendar', moment: markets.moment(place, nowMs) },
    atPill: pillMs === undefined ? undefined : stateAt(pillMs),
    aroundPill:
      pillMs === undefined
        ? []
        : [stateAt(pillMs - boundaryMs), stateAt(pillMs), stateAt(pillMs + boundaryMs)],
  };
}
