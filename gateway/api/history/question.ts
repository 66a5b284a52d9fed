import { FUTURE_MAX_MICROS, isSymbol } from '../../../schemas/pill.ts';
import { EPOCH_PATTERN, parseCursor, parsePosition } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { fault, namingFaults, type ParameterFault, type Parsed } from '../parameters.ts';
import { lengthFaults, orderFaults, readTime } from '../time-range.ts';
import { HISTORY_LIMITS } from './limits.ts';

/** A timestamp is at most this far after the order time of its pill. */
export const AHEAD_MAX_MICROS = FUTURE_MAX_MICROS;

/** One end of a range of the log. */
export type Place =
  /** Of one partition: the question is about that one alone. */
  | { readonly kind: 'cursor'; readonly partition: number; readonly offset: number }
  /** A partition that is absent is at its beginning. */
  | { readonly kind: 'position'; readonly offsets: ReadonlyMap<number, number> };

/** Pills after one place of the log, up to and including another, in the order of the log. */
export interface PlaceQuestion {
  readonly kind: 'places';
  readonly symbol: string | undefined;
  readonly epoch: string;
  /** undefined: from the beginning. */
  readonly after: Place | undefined;
  /** undefined: to where history is now. */
  readonly until: Place | undefined;
  /** We handed it out: the guard has looked at the grant. */
  readonly isGranted: boolean;
}

/** Pills of a symbol whose order time is in [from, to), by order time, then by place. */
export interface TimeQuestion {
  readonly kind: 'time';
  readonly symbol: string;
  readonly from: Micros;
  /** undefined: to now. */
  readonly to: Micros | undefined;
}

export interface HistoryQuery {
  readonly question: PlaceQuestion | TimeQuestion;
  readonly limit: number;
  /** As it came, to be checked against the question. */
  readonly page: string | undefined;
  readonly format: 'json' | 'csv' | undefined;
}

const KNOWN = [
  ...['symbol', 'from', 'to', 'epoch', 'after', 'until', 'grant', 'limit', 'page', 'format'],
] as const;
const OF_TIME = ['from', 'to'];
const OF_PLACES = ['epoch', 'after', 'until', 'grant'];
const PLACE_HINT = 'Neither a cursor, e.g. 3-104, nor a position, e.g. k7f3:0-95,3-140.';
const DAY_S = 86_400;

/** Parses the query of `GET /api/pills`; every fault at once. */
export function parseHistoryQuery(query: URLSearchParams): Parsed<HistoryQuery> {
  const faults = namingFaults(query, KNOWN);
  const add = (parameter: string, code: string, detail: string) => {
    faults.push(fault(parameter, code, detail));
  };
  const symbol = query.get('symbol') ?? undefined;
  if (symbol !== undefined && !isSymbol(symbol)) add('symbol', 'symbol_malformed', 'Not a symbol.');
  const limit = readLimit(query.get('limit'), add);
  const format = query.get('format') ?? undefined;
  if (format !== undefined && format !== 'json' && format !== 'csv') {
    add('format', 'format_unknown', 'Give json or csv.');
  }
  const byTime = OF_TIME.filter((name) => query.has(name));
  const byPlace = OF_PLACES.filter((name) => query.has(name));
  if (byTime.length > 0 && byPlace.length > 0) {
    const hint = `Give from and to, or epoch, after and until: not ${byPlace[0]} with ${byTime[0]}.`;
    add(byPlace[0]!, 'parameters_exclusive', hint);
  } else if (byTime.length + byPlace.length === 0) {
    add('from', 'missing', 'Give from (and to) of a symbol, or after (and until) of the log.');
  }
  const question =
    byPlace.length > 0 ? readPlaces(query, symbol, add) : readTimes(query, symbol, faults);
  if (faults.length > 0 || question === undefined) return { ok: false, faults };
  const page = query.get('page') ?? undefined;
  const shape = format as HistoryQuery['format'];
  return { ok: true, value: { question, limit, page, format: shape } };
}

/** What a page's cursor belongs to: everything but how the page is shown. */
export function questionText(query: URLSearchParams): string {
  const names = ['symbol', 'from', 'to', 'epoch', 'after', 'until'];
  return JSON.stringify(names.map((name) => query.get(name)));
}

type Add = (parameter: string, code: string, detail: string) => void;

function readLimit(text: string | null, add: Add): number {
  const { pageDefault, pageMax } = HISTORY_LIMITS;
  if (text === null) return pageDefault;
  const limit = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= pageMax) return limit;
  add('limit', 'limit_out_of_range', `A whole number from 1 to ${pageMax}.`);
  return pageDefault;
}

function readTimes(
  query: URLSearchParams,
  symbol: string | undefined,
  faults: ParameterFault[],
): TimeQuestion | undefined {
  const from = readTime('from', query.get('from') ?? undefined, faults);
  const to = readTime('to', query.get('to') ?? undefined, faults);
  const lacks = (name: string, hint: string) => faults.push(fault(name, 'missing', hint));
  if (symbol === undefined) lacks('symbol', 'A question by time is about one symbol.');
  if (!query.has('from') && query.has('to')) lacks('from', 'Give the beginning too.');
  if (symbol === undefined || from === undefined) return undefined;
  // Without an end it goes to what is there, also from a time that is still to come.
  if (to !== undefined) faults.push(...orderFaults({ since: from, until: to }));
  return { kind: 'time', symbol, from, to };
}

/** A question by time that is too long: what would fit. @param to its end, or now */
export function timeFault({ from, to }: TimeQuestion, now: Micros): ParameterFault[] {
  return lengthFaults({ since: from, until: to ?? now }, HISTORY_LIMITS.rangeDaysMax * DAY_S);
}

function readPlaces(
  query: URLSearchParams,
  symbol: string | undefined,
  add: Add,
): PlaceQuestion | undefined {
  let epoch = query.get('epoch') ?? undefined;
  if (epoch !== undefined && !new RegExp(EPOCH_PATTERN).test(epoch)) {
    add('epoch', 'epoch_malformed', 'Up to 16 small letters and digits, as in a position.');
    epoch = undefined;
  }
  let isBare = false;
  const readPlace = (name: string): Place | undefined => {
    const text = query.get(name);
    if (text === null) return undefined;
    const cursor = parseCursor(text);
    if (cursor !== undefined) {
      isBare = true;
      return { kind: 'cursor', ...cursor };
    }
    const position = parsePosition(text);
    if (position === undefined) {
      add(name, 'position_malformed', PLACE_HINT);
      return undefined;
    }
    if (epoch !== undefined && epoch !== position.epoch) {
      add(name, 'epochs_differ', 'All that names an epoch must name the same one.');
    }
    epoch ??= position.epoch;
    return { kind: 'position', offsets: position.offsets };
  };
  const after = readPlace('after');
  const until = readPlace('until');
  if (isBare && epoch === undefined && !query.has('epoch')) {
    add('epoch', 'missing', 'A cursor counts in one log: give its epoch.');
  }
  if (after?.kind === 'cursor' && until?.kind === 'cursor') {
    if (after.partition !== until.partition) {
      add('until', 'partitions_differ', 'after and until are of different partitions.');
    }
  }
  if (epoch === undefined) {
    if (!query.has('epoch') && after === undefined && until === undefined) {
      add('epoch', 'missing', 'Give an epoch, or a position, which has it.');
    }
    return undefined;
  }
  return { kind: 'places', symbol, epoch, after, until, isGranted: query.has('grant') };
}
