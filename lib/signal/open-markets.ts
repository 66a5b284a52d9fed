import type { OverridesFile } from '../calendar/overrides-file.ts';
import type { VenueOf } from '../calendar/venue-rules.ts';
import type { Life } from '../run.ts';
import { createMarkets, type Markets } from './markets.ts';

/** How often the file of overrides is looked at. */
const OVERRIDES_LOOK_MS = 10_000;

/**
 * Creates the markets with the days of a file, and takes over what changes in it, until the process
 * stops. Cannot fail: what can is `openOverridesFile`, which holds nothing open.
 */
export function openMarkets(file: OverridesFile, venueOf: VenueOf, life: Life): Markets {
  const markets = createMarkets(file.overrides, venueOf);
  const timer = setInterval(() => {
    const changed = file.refresh();
    if (changed !== undefined) markets.override(changed);
  }, OVERRIDES_LOOK_MS);
  life.onStop('calendar overrides', () => clearInterval(timer));
  return markets;
}
