import { PilloleError } from '../error.ts';
import type { Receipt } from './receipt-type.ts';
import type { HistoryAsOf, HistoryPage, Pill, UnknownSymbol } from './responses.ts';

export const HISTORY_LIMITS = {
  /** Pills of a page: the platform's maximum, since each page may count as a call. */
  pageMax: 5_000,
  /** Pages of one range: a bound against a server that never ends. */
  pagesMax: 100_000,
} as const;

/**
 * The pills of some symbols over a time range, in order time. Each page is requested when it is read,
 * and each is a call; all pages reflect the state of history at the first page. Iterating again
 * requests the pages again.
 */
export interface HistoryRange extends AsyncIterable<Pill, undefined> {
  /** The same pills, page by page. */
  pages(): AsyncGenerator<HistoryPage, undefined>;
  /**
   * The position of history at the first page; undefined before that page. A stream that resumes at
   * this position delivers everything later and nothing twice.
   */
  readonly asOf: HistoryAsOf | undefined;
  /** Receipt of the pages read so far, for `verifyReceipt`; complete after the last one. */
  readonly receipt: Receipt | undefined;
  /**
   * Requested symbols of which the log has no pill, each with the symbol that was probably meant;
   * empty before the first page.
   */
  readonly unknownSymbols: readonly UnknownSymbol[];
}

/** @param getPage requests the page at an address; undefined: the first page */
export function readRange(
  getPage: (next: string | undefined) => Promise<HistoryPage>,
): HistoryRange {
  let asOf: HistoryAsOf | undefined;
  let receipt: Receipt | undefined;
  let unknownSymbols: readonly UnknownSymbol[] = [];
  async function* pages(): AsyncGenerator<HistoryPage, undefined> {
    let next: string | undefined;
    for (let count = 0; count < HISTORY_LIMITS.pagesMax; count += 1) {
      const page = await getPage(next);
      asOf = page.as_of;
      receipt = page.receipt;
      unknownSymbols = page.unknown_symbols ?? [];
      yield page;
      if (page.next === null) return;
      next = page.next;
    }
    const message = `History has more than ${HISTORY_LIMITS.pagesMax} pages.`;
    throw new PilloleError({ code: 'answer_malformed', message });
  }
  async function* pills(): AsyncGenerator<Pill, undefined> {
    for await (const page of pages()) yield* page.data;
  }
  return {
    pages,
    get asOf() {
      return asOf;
    },
    get receipt() {
      return receipt;
    },
    get unknownSymbols() {
      return unknownSymbols;
    },
    [Symbol.asyncIterator]: pills,
  };
}

/** Address of the page after the one at `path`; `next` is an address or a value for `page`. */
export function nextPath(next: string | null | undefined, path: string): string | undefined {
  if (next === null || next === undefined) return undefined;
  if (next.startsWith('/')) return next;
  return withParameter(path, 'page', next);
}

/** A path with a parameter of its query set. */
export function withParameter(path: string, name: string, value: string): string {
  const [start = '', query] = path.split('?');
  const parameters = new URLSearchParams(query);
  parameters.set(name, value);
  return `${start}?${parameters}`;
}

/** A time as the platform reads it. @throws PilloleError `time_malformed` */
export function timeText(time: string | Date): string {
  if (typeof time === 'string') return time;
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new PilloleError({ code: 'time_malformed', message: 'The Date is invalid.' });
}
