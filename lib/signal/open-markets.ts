import { openOverridesFile } from '../calendar/overrides-file.ts';
import type { VenueOf } from '../calendar/venue-rules.ts';
import type { Log } from '../log.ts';
import { createMarkets, type Markets } from './markets.ts';

/** How often the file of overrides is to be looked at. */
export const OVERRIDES_LOOK_MS = 10_000;

/**
 * Creates the markets with the days of a file, if there is one. Holds nothing open.
 * @returns `look`, which takes over what has changed in the file
 * @throws ConfigError when the file cannot be read
 */
export function openMarkets(
  overridesPath: string | undefined,
  venueOf: VenueOf,
  log: Log,
): { readonly markets: Markets; readonly look: () => void } {
  const file = overridesPath === undefined ? undefined : openOverridesFile(overridesPath, log);
  const markets = createMarkets(file?.overrides, venueOf);
  const look = () => {
    const changed = file?.refresh();
    if (changed !== undefined) markets.override(changed);
  };
  return { markets, look };
}
