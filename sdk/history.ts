import type { HistoryAsOf, HistoryPage } from './answers.ts';
import { PilloleError } from './error.ts';
import type { Pill } from './pill.ts';

/**
 * The pills of a symbol over a time, in order time. Pages are asked for as they are read, each is a
 * call; all answer what was known at the first one. Reading it again asks again.
 */
export interface HistoryRange extends AsyncIterable<Pill, undefined> {
  /** The same by page. */
  pages(): AsyncGenerator<HistoryPage, undefined>;
  /**
   * What history knew at the first page; undefined before it. A stream that resumes at its position
   * brings what came later, and nothing of this again.
   */
  readonly asOf: HistoryAsOf | undefined;
}

/** Pages of one range: a bound on a server that never ends. */
const PAGES_MAX = 100_000;

/**
 * @param ask gets the page at an address; undefined: the first one
 */
export function readRange(ask: (next: string | undefined) => Promise<HistoryPage>): HistoryRange {
  let asOf: HistoryAsOf | undefined;
  async function* pages(): AsyncGenerator<HistoryPage, undefined> {
    let next: string | undefined;
    for (let count = 0; count < PAGES_MAX; count += 1) {
      const page = await ask(next);
      asOf = page.as_of;
      yield page;
      if (page.next === null) return;
      next = page.next;
    }
    const message = `More than ${PAGES_MAX} pages.`;
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
    [Symbol.asyncIterator]: pills,
  };
}

/** A time as the platform reads it. @throws PilloleError `time_malformed` */
export function timeText(time: string | Date): string {
  if (typeof time === 'string') return time;
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new PilloleError({ code: 'time_malformed', message: 'The Date is not a valid one.' });
}
