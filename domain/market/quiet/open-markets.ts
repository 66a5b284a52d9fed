import type { Lifecycle } from '../../../lib/run/run-process.ts';
import type { OverridesFile } from '../calendars/overrides-file.ts';
import type { VenueOf } from '../calendars/venue-rules.ts';
import { createMarkets, type Markets } from './markets.ts';

/** How often the file of overrides is checked. */
const OVERRIDES_LOOK_MS = 10_000;

/**
 * Creates the markets with the overrides of a file, and applies its changes until the process stops.
 * Cannot fail: `openOverridesFile`, which keeps no handle open, reports a faulty file.
 */
export function openMarkets(file: OverridesFile, venueOf: VenueOf, life: Lifecycle): Markets {
  const markets = createMarkets(file.overrides, venueOf);
  const timer = setInterval(() => {
    const changed = file.refresh();
    if (changed !== undefined) markets.override(changed);
  }, OVERRIDES_LOOK_MS);
  life.onStop('calendar overrides', () => clearInterval(timer));
  return markets;
}
