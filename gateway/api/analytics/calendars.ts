import type { Calendar } from '../../../lib/calendar/calendar.ts';
import { openOverridesFile } from '../../../lib/calendar/overrides-file.ts';
import { createVenueOf } from '../../../lib/calendar/venue-rules.ts';
import type { Life } from '../../../lib/run.ts';
import { openMarkets } from '../../../lib/signal/open-markets.ts';
import type { ApiConfig } from '../config.ts';

/** The calendar of a symbol; `ALWAYS` never closes, undefined: none is known. */
export type CalendarOf = (symbol: string) => Calendar | 'ALWAYS' | undefined;

/** Calendars by symbol, with the rules and the days that the operator has set. */
export function openCalendarOf(
  { calendarOverrides, venueRules }: Pick<ApiConfig, 'calendarOverrides' | 'venueRules'>,
  life: Life,
): CalendarOf {
  const overrides = openOverridesFile(calendarOverrides, life.log);
  const markets = openMarkets(overrides, createVenueOf(venueRules), life);
  return (symbol) => {
    const place = markets.venueOf(symbol);
    return place === undefined || place === 'ALWAYS' ? place : markets.calendar(place);
  };
}
