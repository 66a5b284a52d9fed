import { type Calendar, openCalendars } from '../../../lib/calendar/calendar.ts';
import { openOverridesFile } from '../../../lib/calendar/overrides-file.ts';
import { createVenueOf } from '../../../lib/calendar/venue-rules.ts';
import type { Life } from '../../../lib/run.ts';
import type { ApiConfig } from '../config.ts';

/** The calendar of a symbol; `ALWAYS` never closes, undefined: none is known. */
export type CalendarOf = (symbol: string) => Calendar | 'ALWAYS' | undefined;

const OVERRIDES_LOOK_MS = 10_000;

/** Calendars by symbol, with the rules and the days that the operator has set. */
export function openCalendarOf(
  { calendarOverrides: path, venueRules }: Pick<ApiConfig, 'calendarOverrides' | 'venueRules'>,
  life: Life,
): CalendarOf {
  const file = path === undefined ? undefined : openOverridesFile(path, life.log);
  let calendars = openCalendars(file?.overrides);
  const timer = setInterval(() => {
    const changed = file?.refresh();
    if (changed !== undefined) calendars = openCalendars(changed);
  }, OVERRIDES_LOOK_MS);
  life.onStop('calendars of analytics', () => clearInterval(timer));
  const venueOf = createVenueOf(venueRules);
  return (symbol) => {
    const place = venueOf(symbol);
    return place === undefined || place === 'ALWAYS' ? place : calendars(place);
  };
}
