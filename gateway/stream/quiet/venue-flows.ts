import { createCadences, lateAfterMs } from '../../../domain/market/cadence/cadence.ts';
import { VENUES } from '../../../domain/market/calendars/venue.ts';
import type { TradingVenue } from '../../../domain/market/calendars/venue-rules.ts';

/** The live pills of one venue. */
export interface VenueFlow {
  /** Slot of its cadence. */
  readonly slot: number;
  lastAtMs: number;
}

/** The venues with a calendar, `ALWAYS`, and `undefined` for all symbols without a venue. */
const FLOWS_MAX = VENUES.length + 2;

/** Creates the watch of which venues send pills at all, each judged by its own cadence. */
export function createVenueFlows() {
  const cadences = createCadences(FLOWS_MAX);
  const flows = new Map<TradingVenue | undefined, VenueFlow>();
  return {
    of(venue: TradingVenue | undefined): VenueFlow {
      const known = flows.get(venue);
      if (known !== undefined) return known;
      const flow = { slot: cadences.slotOf(venue ?? ''), lastAtMs: Number.NEGATIVE_INFINITY };
      flows.set(venue, flow);
      return flow;
    },
    note(flow: VenueFlow, atMs: number): void {
      cadences.noteAt(flow.slot, atMs * 1000);
      if (atMs > flow.lastAtMs) flow.lastAtMs = atMs;
    },
    /** @param receivingSinceMs earlier, no pills could arrive; undefined: never interrupted */
    isSilent(flow: VenueFlow, receivingSinceMs: number | undefined, nowMs: number): boolean {
      const sinceMs = Math.max(flow.lastAtMs, receivingSinceMs ?? flow.lastAtMs);
      return nowMs - sinceMs >= lateAfterMs(cadences.medianMsAt(flow.slot));
    },
  };
}
