import type { Row, Venue } from './symbol-rows.ts';

/** A venue that is not open now, with the number of its symbols here. */
export interface ClosedVenue extends Venue {
  readonly code: string;
  readonly symbols: number;
}

/** The venues that are not open by their calendar, each once; those that open first come first. */
export function closedVenues(
  rows: Iterable<Row>,
  venues: ReadonlyMap<string, Venue>,
): ClosedVenue[] {
  const symbols = new Map<string, number>();
  for (const { venue } of rows) {
    if (venue !== undefined) symbols.set(venue, (symbols.get(venue) ?? 0) + 1);
  }
  const closed = [...venues].filter(([code, venue]) => isShut(venue) && symbols.has(code));
  return closed
    .map(([code, venue]) => ({ ...venue, code, symbols: symbols.get(code)! }))
    .sort((a, b) => opensMs(a) - opensMs(b) || (a.name < b.name ? -1 : 1));
}

/** Whether a venue is closed by its calendar; not if its state is unknown. */
export function isShut(venue: Venue | undefined): boolean {
  return venue !== undefined && venue.state !== 'open' && venue.state !== 'unknown';
}

const opensMs = ({ opens_at }: Venue) =>
  opens_at === null ? Number.POSITIVE_INFINITY : Date.parse(opens_at);
