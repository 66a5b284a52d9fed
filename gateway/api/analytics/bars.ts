import { Type } from 'typebox';
import { type SessionHours, sessionsBetween } from '../../../lib/calendar/session-hours.ts';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import type { Parsed } from '../parameters.ts';
import { parseWindow, type Window } from '../time-range.ts';
import type { CalendarOf } from './calendars.ts';
import type { Desk } from './desk.ts';
import { BAR_RANGES, BARS_MAX, type Interval } from './limits.ts';
import { SYMBOL, WINDOW, whole } from './parameters.ts';
import { lessTime, type Question, type Sources } from './question.ts';

/** What the views answer of a bar. */
interface Figures {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly count: number;
  readonly mean: number;
  readonly p05: number;
  readonly p50: number;
  readonly p95: number;
  readonly mean_confidence: number;
  readonly late_count: number;
  readonly revision: number;
}

const QUERY = {
  symbol: SYMBOL,
  interval: Type.Optional(
    Type.Enum(Object.keys(BAR_RANGES) as Interval[], { description: 'Of a bar; `1m` by default' }),
  ),
  day: Type.Optional(
    Type.Enum(['utc', 'session'], {
      description:
        'Of a bar of `1d`: from 00:00 UTC, which is the default, or a session of the venue',
    }),
  ),
  ...WINDOW,
  order: Type.Optional(
    Type.Enum(['desc', 'asc'], { description: 'By time; the newest first by default' }),
  ),
  limit: whole(1, BARS_MAX, 500, 'Bars of a page'),
  page: Type.Optional(
    Type.String({ pattern: '^[0-9]{1,16}$', description: '`next` of the page before' }),
  ),
};

interface Asked {
  readonly symbol: string;
  readonly interval: Interval;
  /** Spans of the sessions; undefined for bars of equal length. */
  readonly sessions: readonly SessionHours[] | undefined;
  readonly window: Window;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
}

/** `GET /api/analytics/bars`. */
export function barsQuestion(
  { desk, backfillAgeUs }: Sources,
  calendarOf: CalendarOf,
): Question<typeof QUERY, Asked> {
  return {
    name: 'bars',
    summary: 'Bars of the spread',
    description:
      'By order time, which is the earlier of `timestamp` and `received_at`. Times without a pill have ' +
      'no bar. `final`: what comes yet is backfill. `revision` counts the pills received after the ' +
      'end of the bar. Percentiles are interpolated (type 7 of Hyndman and Fan). A bar of a session ' +
      'holds what is from its open to its close, the lunch break included. `from` and `to` are widened ' +
      'to whole bars. Longest time: ' +
      `${Object.entries(BAR_RANGES)
        .map(([name, { maxS }]) => `${name} ${maxS / 86_400} days`)
        .join(', ')}.`,
    query: QUERY,
    answer: {
      symbol: Type.String(),
      interval: Type.String(),
      day: Type.Optional(Type.String()),
      order: Type.String(),
      data: Type.Array(BarSchema),
      next: Type.Union([Type.String(), Type.Null()]),
    },
    example: EXAMPLE,
    csvExample:
      'start,open,high,low,close,count,mean,p05,p50,p95,mean_confidence,late_count,final,revision\r\n',
    parse: (query, now) => parse(query, now, calendarOf),
    less({ interval, window, sessions }) {
      const stepS = BAR_RANGES[interval].stepS;
      if (window.until - window.since > stepS * 1e6) return lessTime(window);
      // Half of a bar is the same bar again.
      if (sessions !== undefined) return { hint: 'Ask for the hours of the session: interval=1h.' };
      const names = Object.keys(BAR_RANGES);
      const shorter = names[names.indexOf(interval) - 1];
      if (shorter === undefined) return { hint: 'There is no shorter bar than this one.' };
      return { hint: 'It is one bar: shorter ones may fit.', try: { interval: shorter } };
    },
    async find(asked, { completeUntil }) {
      // What comes yet for a bar that ended before is received so late that it is backfill.
      const finalUntil = completeUntil - backfillAgeUs;
      const bars =
        asked.sessions === undefined
          ? await stepBars(desk, asked, finalUntil)
          : await sessionBars(desk, asked, asked.sessions, finalUntil);
      const data = bars.slice(0, asked.limit).map(({ bar }) => bar);
      const more = bars.length > asked.limit ? bars[asked.limit - 1]! : undefined;
      const body = {
        symbol: asked.symbol,
        interval: asked.interval,
        ...(asked.sessions === undefined ? {} : { day: 'session' }),
        order: asked.order,
        data,
        next:
          more === undefined ? null : String(asked.order === 'asc' ? more.endsAt : more.startsAt),
      };
      return {
        body,
        table: { columns: asked.sessions === undefined ? COLUMNS : SESSION_COLUMNS, rows: data },
      };
    },
  };
}

type BarsQuery = Parameters<Question<typeof QUERY, Asked>['parse']>[0];

function parse(query: BarsQuery, now: Micros, calendarOf: CalendarOf): Parsed<Asked> {
  const { symbol, interval = '1m', day, order = 'desc', limit = 500, page } = query;
  if (day === 'session' && interval !== '1d') {
    return refused('day', 'parameters_exclusive', 'It goes with interval=1d alone.');
  }
  const { stepS, ...range } = BAR_RANGES[interval];
  const parsed = parseWindow(query, range, now);
  if (!parsed.ok) return parsed;
  const step = stepS * 1e6;
  let since = Math.floor(parsed.value.since / step) * step;
  let until = Math.ceil(parsed.value.until / step) * step;
  if (page !== undefined) {
    // Only within the time asked for: whoever makes one up gets nothing that he could not ask for.
    if (order === 'asc') since = Math.max(since, Number(page));
    else until = Math.min(until, Number(page));
    // Inside a bar it would give a part of it as if it were the whole.
    const isEdge = day === 'session' || Number(page) % step === 0;
    if (since >= until || !isEdge)
      return refused('page', 'page_unknown', 'Not a page of this time.');
  }
  const asked = { symbol, interval, window: { since, until }, order, limit };
  if (day !== 'session') return { ok: true, value: { ...asked, sessions: undefined } };
  const calendar = calendarOf(symbol);
  if (calendar === undefined || calendar === 'ALWAYS') {
    const hint = `No calendar with sessions is known for ${symbol}. Ask for day=utc.`;
    return refused('day', 'calendar_unknown', hint);
  }
  const [first, last] = [calendar.times[0]!, calendar.times.at(-1)!];
  if (since / 1_000 < first || until / 1_000 > last) {
    const known = `${formatTimestamp(first * 1_000)} to ${formatTimestamp(last * 1_000)}`;
    return refused('from', 'calendar_unknown', `The calendar of ${symbol} goes from ${known}.`);
  }
  const sessions = sessionsBetween(calendar, since / 1_000, until / 1_000);
  const isEdge = ({ openMs, closeMs }: SessionHours) =>
    page === undefined || Number(page) <= openMs * 1_000 || Number(page) >= closeMs * 1_000;
  if (!sessions.every(isEdge)) return refused('page', 'page_unknown', 'Not a page of this time.');
  return { ok: true, value: { ...asked, sessions } };
}

function refused(parameter: string, code: string, detail: string) {
  return { ok: false, faults: [{ parameter, code, detail }] } as const;
}

interface PlacedBar {
  readonly bar: Readonly<Record<string, unknown>>;
  readonly startsAt: Micros;
  readonly endsAt: Micros;
}

async function stepBars(desk: Desk, asked: Asked, finalUntil: Micros): Promise<PlacedBar[]> {
  const stepS = BAR_RANGES[asked.interval].stepS;
  const rows = await desk.ask<Figures & { start: string }>(
    `SELECT * EXCEPT symbol FROM bars(symbols = [{symbol:String}], step_s = {step:UInt32},
       since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})
     ORDER BY start ${asked.order === 'asc' ? 'ASC' : 'DESC'} LIMIT {limit:UInt32}`,
    {
      symbol: asked.symbol,
      step: stepS,
      since: decimalSeconds(asked.window.since),
      until: decimalSeconds(asked.window.until),
      limit: asked.limit + 1,
    },
  );
  return rows.map((row) => {
    const startsAt = Date.parse(row.start) * 1_000;
    const endsAt = startsAt + stepS * 1e6;
    return { startsAt, endsAt, bar: { ...row, final: endsAt <= finalUntil } };
  });
}

async function sessionBars(
  desk: Desk,
  asked: Asked,
  sessions: readonly SessionHours[],
  finalUntil: Micros,
): Promise<PlacedBar[]> {
  if (sessions.length === 0) return [];
  const times = (of: (session: SessionHours) => number) =>
    sessions.map((session) => decimalSeconds(of(session) * 1_000));
  const rows = await desk.ask<Figures & { span: number }>(
    `SELECT * EXCEPT symbol FROM span_bars(symbol = {symbol:String},
       starts = {starts:Array(DateTime64(6, 'UTC'))}, ends = {ends:Array(DateTime64(6, 'UTC'))})
     ORDER BY span ${asked.order === 'asc' ? 'ASC' : 'DESC'} LIMIT {limit:UInt32}`,
    {
      symbol: asked.symbol,
      starts: times(({ openMs }) => openMs),
      ends: times(({ closeMs }) => closeMs),
      limit: asked.limit + 1,
    },
  );
  return rows.map(({ span, ...figures }) => {
    const { date, openMs, closeMs } = sessions[span - 1]!;
    const endsAt = closeMs * 1_000;
    const bar = {
      session_date: date,
      start: formatTimestamp(openMs * 1_000),
      end: formatTimestamp(endsAt),
      ...figures,
      final: endsAt <= finalUntil,
    };
    return { startsAt: openMs * 1_000, endsAt, bar };
  });
}

const BarSchema = Type.Object({
  session_date: Type.Optional(Type.String({ description: 'Local date, with day=session' })),
  start: Type.String(),
  end: Type.Optional(Type.String({ description: 'With day=session' })),
  open: Type.Number(),
  high: Type.Number(),
  low: Type.Number(),
  close: Type.Number(),
  count: Type.Integer(),
  mean: Type.Number(),
  p05: Type.Number(),
  p50: Type.Number(),
  p95: Type.Number(),
  mean_confidence: Type.Number(),
  late_count: Type.Integer(),
  final: Type.Boolean(),
  revision: Type.Integer(),
});

const FIGURES = [
  ...['open', 'high', 'low', 'close', 'count', 'mean', 'p05', 'p50', 'p95'],
  ...['mean_confidence', 'late_count', 'final', 'revision'],
];
const COLUMNS = ['start', ...FIGURES];
const SESSION_COLUMNS = ['session_date', 'start', 'end', ...FIGURES];

const EXAMPLE = {
  symbol: '7203.T',
  interval: '1m',
  order: 'desc',
  data: [
    {
      start: '2026-11-20T01:02:00Z',
      ...{ open: 0.12, high: 0.19, low: 0.11, close: 0.14, count: 42, mean: 0.13 },
      ...{ p05: 0.11, p50: 0.13, p95: 0.18, mean_confidence: 0.83, late_count: 0 },
      ...{ final: false, revision: 3 },
    },
  ],
  next: null,
};
