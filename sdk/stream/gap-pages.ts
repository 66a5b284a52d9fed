import { asPilloleError, PilloleError } from '../error.ts';
import { HISTORY_LIMITS, nextPath, withParameter } from '../rest/history-range.ts';
import type { HistoryPage, Pill } from '../rest/responses.ts';
import type { RestClient } from '../rest/rest-client.ts';
import { offsetOf, parseCursor, parsePosition } from './stream-position.ts';

export const GAP_LIMITS = {
  /** Pages that are read for one gap. */
  pagesMax: 100,
  /** Symbols of one break that are filled, since their calls count; more are only reported. */
  symbolsMax: 20,
} as const;

/**
 * Reads the pages of a gap from history.
 * @param first path of the first page, on the API's own origin
 * @param options `until`: the last cursor of the gap; null: the last page is the end. `room` waits
 *   until there is room for another page.
 * @returns undefined if history has the gap to its end, otherwise the reason why it was not filled
 */
export async function readGapPages(
  rest: RestClient,
  first: string,
  options: {
    readonly until: string | null;
    readonly onPill: (pill: Pill) => void;
    readonly room: () => Promise<void>;
    readonly signal: AbortSignal;
  },
): Promise<PilloleError | undefined> {
  const { signal, until, onPill, room } = options;
  let path: string | undefined = first;
  let last: string | undefined;
  let position: string | undefined;
  try {
    for (let pages = 0; path !== undefined; pages += 1) {
      if (pages === GAP_LIMITS.pagesMax) return tooLong();
      await room();
      const page: HistoryPage = await rest.get<HistoryPage>(path, { signal });
      for (const pill of page.data) {
        onPill(pill);
        last = pill.cursor;
      }
      ({ position } = page);
      path = nextPath(page.next, path);
    }
  } catch (error) {
    return asPilloleError(error, 'answer_malformed');
  }
  // If the record at `until` had no effect, no pill has its cursor, but the position covers it.
  if (
    until === null ||
    offsetOf(last) >= Math.max(offsetOf(until), 0) ||
    isCovered(position, until)
  )
    return undefined;
  const message = `History ends at ${last ?? 'nothing'}, before ${until}.`;
  return new PilloleError({ code: 'history_incomplete', message, retry: 'after' });
}

/** Path of the pills of a symbol after one cursor, up to and including another. */
export function gapPath(
  symbol: string,
  epoch: string,
  after: string | null,
  until: string | null,
): string {
  const query = new URLSearchParams({ symbol, epoch });
  if (after !== null) query.set('after', after);
  if (until !== null) query.set('until', until);
  query.set('limit', String(HISTORY_LIMITS.pageMax));
  return `/api/pills?${query}`;
}

/** A path that the platform sent, with the largest page size unless it names one. */
export function withLimit(path: string): string {
  const query = path.split('?')[1];
  if (query === undefined || new URLSearchParams(query).has('limit')) return path;
  return withParameter(path, 'limit', String(HISTORY_LIMITS.pageMax));
}

function isCovered(position: string | undefined, until: string): boolean {
  const cursor = parseCursor(until);
  const offset = cursor && parsePosition(position)?.offsets.get(cursor.partition);
  return offset !== undefined && offset >= cursor!.offset;
}

function tooLong(): PilloleError {
  const message = `The gap has more than ${GAP_LIMITS.pagesMax} pages: read the rest with history().`;
  return new PilloleError({ code: 'gap_too_long', message });
}
