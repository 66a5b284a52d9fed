import type { HistoryPage } from './answers.ts';
import { asPilloleError, PilloleError } from './error.ts';
import type { Pill } from './pill.ts';
import { parseCursor, parsePosition } from './position.ts';
import type { Rest } from './rest.ts';

export const FILL_LIMITS = {
  /** Pages of one gap. */
  pagesMax: 100,
  /** Symbols of one break that are filled by calls that count; more are told, not filled. */
  symbolsMax: 20,
  /** Pills of a page: as many as the platform gives, since each page may be a call. */
  pageMax: 5_000,
} as const;

export interface FillOptions {
  readonly rest: Rest;
  /** Address of the first page, of the API's own origin. */
  readonly path: string;
  /** The last cursor that must have come; null: the last page says that all came. */
  readonly until: string | null;
  readonly onPill: (pill: Pill) => void;
  /** Waits until there is room for another page. */
  readonly room: () => Promise<void>;
  readonly signal: AbortSignal;
}

/** @returns undefined when the gap was filled to its end, else why it was not */
export async function fillGap(options: FillOptions): Promise<PilloleError | undefined> {
  const { rest, signal, until, onPill, room } = options;
  let path: string | undefined = options.path;
  let last: string | undefined;
  let position: string | undefined;
  try {
    for (let pages = 0; path !== undefined; pages += 1) {
      if (pages === FILL_LIMITS.pagesMax) return tooLong();
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
  // The position says it where what stood at the end has no effect, and so is no pill.
  if (until === null || reaches(last, until) || holds(position, until)) return undefined;
  const message = `History ends at ${last ?? 'nothing'}, before ${until}.`;
  return new PilloleError({ code: 'history_incomplete', message, retry: 'after' });
}

/** Address of the pills of a symbol after a cursor, up to and with another. */
export function fillPath(
  symbol: string,
  epoch: string,
  after: string | null,
  until: string | null,
): string {
  const query = new URLSearchParams({ symbol, epoch });
  if (after !== null) query.set('after', after);
  if (until !== null) query.set('until', until);
  query.set('limit', String(FILL_LIMITS.pageMax));
  return `/api/pills?${query}`;
}

/** A fill that the platform has told, by as large pages as it gives, where it does not say. */
export function withLimit(path: string): string {
  const [start = '', query] = path.split('?');
  const parameters = new URLSearchParams(query);
  if (query === undefined || parameters.has('limit')) return path;
  parameters.set('limit', String(FILL_LIMITS.pageMax));
  return `${start}?${parameters}`;
}

/** Address of the page after one; `next` is an address, or what `page` takes. */
export function nextPath(next: string | null | undefined, path: string): string | undefined {
  if (next === null || next === undefined) return undefined;
  if (next.startsWith('/')) return next;
  const [start = '', query] = path.split('?');
  const parameters = new URLSearchParams(query);
  parameters.set('page', next);
  return `${start}?${parameters}`;
}

function reaches(last: string | undefined, until: string): boolean {
  return (parseCursor(last ?? '')?.offset ?? -1) >= (parseCursor(until)?.offset ?? 0);
}

function holds(position: string | undefined, until: string): boolean {
  const cursor = parseCursor(until);
  const offset = cursor && parsePosition(position)?.offsets.get(cursor.partition);
  return offset !== undefined && offset >= cursor!.offset;
}

function tooLong(): PilloleError {
  const message = `More than ${FILL_LIMITS.pagesMax} pages; read the rest with history().`;
  return new PilloleError({ code: 'gap_too_long', message });
}
