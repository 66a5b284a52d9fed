import { nowMicros } from '../../../lib/clock.ts';
import { formatPosition, type Offsets, parsePosition } from '../../../schemas/position.ts';
import type { ProblemCode } from '../../http/problem-catalogue.ts';
import type { ProblemMembers } from '../../http/problems.ts';
import type { Select } from '../clickhouse/select.ts';
import { type AsOf, has, hasAllOf, type Stored, toldAsOf } from '../clickhouse/stored.ts';
import type { AskLogEnd } from '../log-end.ts';
import { fault, type ParameterFault } from '../parameters.ts';
import type { Turnstile } from '../turnstile.ts';
import type { PageState, PlaceState, TimeState } from './page-token.ts';
import { readPlaces, restAfter } from './place-pages.ts';
import type { Progress } from './progress.ts';
import { type PlaceQuestion, type TimeQuestion, timeFault } from './question.ts';
import { type HistoryPill, pillOf } from './rows.ts';
import { isForeign, type Log, reached, spanFaults, spanOf, wanted, widthFault } from './span.ts';
import { readTimes } from './time-pages.ts';

/** A page, before it is shown. */
export interface Page {
  readonly data: readonly HistoryPill[];
  /** Where the next one begins; undefined: the end. */
  readonly next: PageState | undefined;
  /** Of a question by position: all up to there was handed over. */
  readonly position: string | undefined;
  readonly asOf: AsOf;
  /** The same question has the same answer for ever. */
  readonly isFinal: boolean;
}

export type Refusal = readonly [ProblemCode, ProblemMembers];

export interface HistorySources {
  readonly select: Select;
  readonly progress: Progress;
  readonly turnstile: Turnstile;
  readonly log: Log;
  /** To say whether history is behind it. */
  readonly logEnd: AskLogEnd;
}

/** Reads pages of history. A refusal is an answer too; what throws is `NoAnswer`. */
export interface History {
  places(ask: Ask<PlaceQuestion, PlaceState>): Promise<Page | Refusal>;
  times(ask: Ask<TimeQuestion, TimeState>): Promise<Page | Refusal>;
}

export interface Ask<Q, S extends PageState> {
  readonly question: Q;
  readonly limit: number;
  /** Where the page begins; undefined: the first one. */
  readonly state: S | undefined;
  readonly accountId: string;
}

export function createHistory(sources: HistorySources): History {
  const { select, progress, turnstile, log, logEnd } = sources;
  const { epoch } = log;

  const asOf = async (stored: Stored): Promise<AsOf> =>
    toldAsOf(epoch, stored, hasAllOf(stored, await logEnd()), nowMicros());
  const behind = (stored: Stored): Refusal => [
    'history_behind',
    { position: formatPosition(epoch, stored.offsets), retry_after_s: 1 },
  ];

  const inTurn = async <T>(accountId: string, read: () => Promise<T>): Promise<T | undefined> => {
    const leave = await turnstile.enter(accountId);
    if (leave === undefined) return undefined;
    try {
      return await read();
    } finally {
      leave();
    }
  };

  return {
    async places({ question, limit, state, accountId }) {
      if (isForeign(question, log)) return ['position_unknown', {}];
      const faults = spanFaults(question, log);
      if (faults.length > 0) return invalid(faults);
      const settled = state?.stored === undefined || state.stored === null ? undefined : state;
      const need: Offsets = settled === undefined ? wanted(question, log) : new Map(settled.stored);
      // Before its turn: who waits for the sink keeps nobody else waiting.
      const stored = await progress.reach(need, accountId);
      if (stored === undefined) return OVERLOADED;
      if (!has(stored, need)) return behind(stored);
      const horizon = settled === undefined ? stored.offsets : need;
      const span = spanOf(question, log, horizon);
      const tooWide = state === undefined ? widthFault(span, question, log) : [];
      if (tooWide.length > 0) return invalid(tooWide);
      const [partition = 0, offset = 0] = state?.at ?? [];
      const stretches =
        state === undefined ? span.stretches : restAfter(span.stretches, { partition, offset });
      const ask = { epoch, symbol: question.symbol, stretches, limit };
      const read = await inTurn(accountId, () => readPlaces(select, ask));
      if (read === undefined) return OVERLOADED;
      const { rows, at } = read;
      const next: PlaceState | undefined = at && {
        at: [at.partition, at.offset],
        stored: question.until === undefined ? [...horizon] : null,
      };
      return {
        data: rows.map((row) => pillOf(row, epoch)),
        next,
        position: formatPosition(epoch, reached(span, at)),
        asOf: await asOf(stored),
        isFinal: question.until !== undefined,
      };
    },
    async times({ question, limit, state, accountId }) {
      const tooLong = timeFault(question, nowMicros());
      if (tooLong.length > 0 && state === undefined) return invalid(tooLong);
      const stored = await progress.now();
      const settled = state?.asOf ?? (await asOf(stored));
      const partition = log.partitionOf(question.symbol);
      const position = parsePosition(settled.position);
      // A page of a former log: its offsets say nothing of this one.
      if (position?.epoch !== epoch) return PAGE_UNKNOWN;
      const known = position.offsets.get(partition) ?? -1;
      // The table was made anew since the first page: what is not there yet must not be missing.
      if ((stored.offsets.get(partition) ?? -1) < known) return behind(stored);
      const ask = { ...question, limit, key: state?.key, known: { epoch, offset: known } };
      const read = await inTurn(accountId, () => readTimes(select, ask));
      if (read === undefined) return OVERLOADED;
      const { rows, key } = read;
      return {
        data: rows.map((row) => pillOf(row, epoch)),
        next: key && { key, asOf: settled },
        position: undefined,
        asOf: settled,
        isFinal: false,
      };
    },
  };
}

/** What was given as a page is none of this question, or not any more. */
export const PAGE_UNKNOWN: Refusal = invalid([
  fault(
    'page',
    'page_unknown',
    'Not a page of this question: take `next` as it is, or leave page out.',
  ),
]);
const OVERLOADED: Refusal = ['overloaded', { retry_after_s: 1 }];

function invalid(errors: readonly ParameterFault[]): Refusal {
  return ['parameter_invalid', { errors }];
}
