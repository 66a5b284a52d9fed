import { type Static, type TObject, Type } from 'typebox';
import type { Calendar } from '../../../domain/market/calendars/calendar.ts';
import {
  type SessionHours,
  sessionsBetween,
} from '../../../domain/market/calendars/session-hours.ts';
import { SYMBOL_PATTERN } from '../../../schemas/pill.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import { ruled } from '../server/form.ts';
import { type Parsed, refused } from '../server/parameters.ts';
import { choice, optionalText, PAGE_HINT, symbolOf, whole } from '../server/schemas.ts';
import { readWellFormedSymbols, symbolList } from '../server/symbol-list.ts';
import { parseWindow, type Window } from '../server/time-range.ts';
import { type AnalyticsDeps, laterHalf } from './analytics-query.ts';
import { BAR_RANGES, BARS_MAX, BARS_SYMBOLS_MAX, type Interval } from './limits.ts';
import { WINDOW, wholeSteps } from './window-parameters.ts';

const INTERVALS = Object.keys(BAR_RANGES) as Interval[];

export const BARS_PARAMETERS = {
  symbol: Type.Optional(symbolOf('Market symbol; excludes `symbols`')),
  symbols: symbolList(BARS_SYMBOLS_MAX, 'each bar names its symbol'),
  interval: choice(INTERVALS, 'Length of a bar; `1m` by default'),
  day: choice(
    ['utc', 'session'],
    'With `interval=1d` and one symbol: `utc`, the default, is a day from 00:00 UTC; `session` is ' +
      'a trading session of the venue',
  ),
  ...WINDOW,
  order: choice(['desc', 'asc'], 'Order by time, then by symbol; newest first by default'),
  limit: whole(1, BARS_MAX, 500, 'Bars per page, of all symbols together'),
  page: optionalText('`next` of the previous page', {
    pattern: ruled(`^[0-9]{1,16}(~${SYMBOL_PATTERN.slice(1, -1)})?$`, 'page_unknown', PAGE_HINT),
  }),
};

export interface BarsRequest {
  /** By name. */
  readonly symbols: readonly string[];
  /** Several symbols may be requested: each bar names its symbol. */
  readonly isList: boolean;
  readonly interval: Interval;
  /** The trading sessions of the only symbol, one bar each; undefined for bars of equal length. */
  readonly sessions: readonly SessionHours[] | undefined;
  readonly window: Window;
  /** The last bar of the previous page, if its step may have bars of further symbols. */
  readonly after: PageStart | undefined;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
}

interface PageStart {
  readonly start: Micros;
  readonly symbol: string;
}

type Query = Static<TObject<typeof BARS_PARAMETERS>>;
type Failed = { readonly ok: false; readonly faults: readonly ParameterFault[] };

/** Parses the query of `GET /api/analytics/bars`. */
export function parseBarsRequest(
  query: Query,
  now: Micros,
  calendarOf: AnalyticsDeps['calendarOf'],
): Parsed<BarsRequest> {
  const { interval = '1m', day, order = 'desc', limit = 500 } = query;
  const symbols = readSubject(query);
  if (!symbols.ok) return symbols;
  const isList = query.symbols !== undefined;
  if (day === 'session' && (interval !== '1d' || isList)) {
    const hint = isList
      ? 'day=session requires `symbol`: the sessions of venues differ.'
      : 'day=session requires interval=1d.';
    return refused('day', 'parameters_exclusive', hint);
  }
  const { stepS, ...range } = BAR_RANGES[interval];
  const parsed = parseWindow(query, range, now);
  if (!parsed.ok) return parsed;
  const whole = { window: wholeSteps(parsed.value, stepS), isList, order, limit };
  const paged = startAtPage(query.page, whole, day === 'session' ? undefined : stepS * 1e6);
  if (paged === undefined) return PAGE_UNKNOWN;
  const request = { ...whole, ...paged, symbols: symbols.value, interval };
  if (day !== 'session') return { ok: true, value: { ...request, sessions: undefined } };
  const sessions = readSessions(query.symbol!, request.window, query.page, calendarOf);
  return Array.isArray(sessions) ? { ok: true, value: { ...request, sessions } } : sessions;
}

/** The requested symbols, by name. */
function readSubject({ symbol, symbols: list }: Query): Parsed<readonly string[]> {
  if (symbol !== undefined && list !== undefined) {
    return refused('symbols', 'parameters_exclusive', 'Use `symbol` or `symbols`, not both.');
  }
  if (symbol !== undefined) return { ok: true, value: [symbol] };
  if (list === undefined) {
    const hint = `Give \`symbol\`, or \`symbols\` with up to ${BARS_SYMBOLS_MAX}.`;
    return refused('symbol', 'missing', hint);
  }
  const faults: ParameterFault[] = [];
  const value = readWellFormedSymbols(list, faults).sort();
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value };
}

/**
 * The part of a request from a page on. The page is clamped to the requested window: a forged one
 * reveals nothing that the caller could not request anyway.
 * @param stepUs undefined for sessions, whose edges are checked later
 * @returns undefined if the page does not belong to the window
 */
function startAtPage(
  page: string | undefined,
  { window, isList, order }: Pick<BarsRequest, 'window' | 'isList' | 'order'>,
  stepUs: Micros | undefined,
): Pick<BarsRequest, 'window' | 'after'> | undefined {
  if (page === undefined) return { window, after: undefined };
  const [edge, symbol] = page.split('~') as [string, string?];
  if (isList !== (symbol !== undefined)) return undefined;
  const at = Number(edge);
  // A page inside a bar would return part of the bar as if it were the whole.
  if (stepUs !== undefined && at % stepUs !== 0) return undefined;
  // For several symbols the edge is the start of a step of which other symbols may follow.
  const until = symbol === undefined ? at : at + stepUs!;
  const paged =
    order === 'asc'
      ? { ...window, since: Math.max(window.since, at) }
      : { ...window, until: Math.min(window.until, until) };
  if (paged.since >= paged.until) return undefined;
  return { window: paged, after: symbol === undefined ? undefined : { start: at, symbol } };
}

/** The sessions of a symbol in a window. */
function readSessions(
  symbol: string,
  { since, until }: Window,
  page: string | undefined,
  calendarOf: (symbol: string) => Calendar | 'ALWAYS' | undefined,
): SessionHours[] | Failed {
  const calendar = calendarOf(symbol);
  if (calendar === undefined || calendar === 'ALWAYS') {
    const hint = `No calendar with sessions is known for ${symbol}. Use day=utc.`;
    return refused('day', 'calendar_unknown', hint);
  }
  const [first, last] = [calendar.times[0]!, calendar.times.at(-1)!];
  if (since / 1_000 < first || until / 1_000 > last) {
    const known = `${formatTimestamp(first * 1_000)} to ${formatTimestamp(last * 1_000)}`;
    return refused('from', 'calendar_unknown', `The calendar of ${symbol} covers ${known}.`);
  }
  const sessions = sessionsBetween(calendar, since / 1_000, until / 1_000);
  const isEdge = ({ openMs, closeMs }: SessionHours) =>
    page === undefined || Number(page) <= openMs * 1_000 || Number(page) >= closeMs * 1_000;
  return sessions.every(isEdge) ? sessions : PAGE_UNKNOWN;
}

const PAGE_UNKNOWN = refused('page', 'page_unknown', PAGE_HINT);

/** A request for less, if the answer would exceed the bounds. */
export function narrowerBars({ interval, window, sessions }: BarsRequest) {
  const { stepS } = BAR_RANGES[interval];
  if (window.until - window.since > stepS * 1e6) return laterHalf(window);
  // Half of one bar is widened to the same bar again.
  if (sessions !== undefined) return { hint: 'Request the hours of the session: interval=1h.' };
  const shorter = INTERVALS[INTERVALS.indexOf(interval) - 1];
  if (shorter === undefined) return { hint: 'There is no shorter interval.' };
  return { hint: 'The window is a single bar; shorter bars may fit.', try: { interval: shorter } };
}
