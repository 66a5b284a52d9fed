import { Type } from 'typebox';
import type { SessionHours } from '../../../domain/market/calendars/session-hours.ts';
import { decimalSeconds } from '../../../lib/clickhouse/clickhouse-client.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import type { Statement } from '../clickhouse/read-bytes.ts';
import { integers, numbers, texts } from '../server/example.ts';
import { FIGURE_DECIMALS, type FigureKind, roundFigures } from '../server/figures.ts';
import { nextPage } from '../server/next-page.ts';
import { Next } from '../server/schemas.ts';
import { windowBody } from '../server/time-range.ts';
import type { AnalyticsDeps, AnalyticsQuery } from './analytics-query.ts';
import type { AnalyticsReader } from './analytics-reader.ts';
import {
  BARS_PARAMETERS,
  type BarsRequest,
  narrowerBars,
  parseBarsRequest,
} from './bars-request.ts';
import { BAR_RANGES, BARS_SYMBOLS_MAX } from './limits.ts';
import { WINDOW_ARGUMENTS, windowParameters } from './window-parameters.ts';

type BarsQuery = AnalyticsQuery<typeof BARS_PARAMETERS, BarsRequest>;

/** `GET /api/analytics/bars`. */
export function barsQuery({ reader, backfillAgeUs, calendarOf }: AnalyticsDeps): BarsQuery {
  return {
    name: 'bars',
    summary: 'Bars of the spread, of one symbol or of several',
    description: DESCRIPTION,
    parameters: BARS_PARAMETERS,
    answer: {
      symbol: Type.Optional(
        Type.String({
          description: 'Absent with `symbols`: each bar names its own',
          examples: ['7203.T'],
        }),
      ),
      ...texts({ interval: '1m', order: 'desc' }),
      day: Type.Optional(Type.String()),
      data: Type.Array(BarSchema),
      next: Next,
    },
    statement(request, { completeUntil }) {
      const { symbols, sessions, order, limit } = request;
      const known = sessions?.length === 0 ? [NO_SESSION] : sessions;
      const { query, params } =
        known === undefined
          ? selectSteps(request, limit)
          : selectSessions(symbols[0]!, known, order, limit);
      return {
        query: `SELECT ${typedColumns(request)} ${query}`,
        params: {
          ...params,
          final_until: decimalSeconds(Math.max(0, completeUntil - backfillAgeUs)),
          ...(known && { dates: known.map(({ date }) => date) }),
        },
      };
    },
    parse: (query, now) => parseBarsRequest(query, now, calendarOf),
    narrower: narrowerBars,
    async run(request, { completeUntil }) {
      const { symbols, isList, interval, sessions, order, limit } = request;
      // A pill that still arrives for a bar that ended before this time is backfill.
      const finalUntil = completeUntil - backfillAgeUs;
      const bars =
        sessions === undefined
          ? await stepBars(reader, request, finalUntil)
          : await sessionBars(reader, request, sessions, finalUntil);
      const data = bars.slice(0, limit).map(({ bar }) => bar);
      const last = bars.length > limit ? bars[limit - 1]! : undefined;
      const body = {
        ...(isList ? {} : { symbol: symbols[0] }),
        interval,
        ...(sessions === undefined ? {} : { day: 'session' }),
        order,
        data,
        next: last === undefined ? null : nextPage('/api/analytics/bars', pageAfter(last, request)),
      };
      const columns = sessions === undefined ? COLUMNS : SESSION_COLUMNS;
      return { body, table: { columns: isList ? ['symbol', ...columns] : columns, rows: data } };
    },
  };
}

/** The request that continues after a bar, in the same window. */
function pageAfter(
  { bar, startsAt, endsAt }: Bar,
  { symbols, isList, interval, sessions, window, order, limit }: BarsRequest,
) {
  const edge = String(order === 'asc' ? endsAt : startsAt);
  return {
    ...(isList ? { symbols: symbols.join(',') } : { symbol: symbols[0]! }),
    interval,
    ...(sessions === undefined ? {} : { day: 'session' }),
    ...windowBody(window),
    ...{ order, limit: String(limit) },
    page: isList ? `${startsAt}~${bar.symbol}` : edge,
  };
}

const DESCRIPTION =
  'Bars by order time, the earlier of `timestamp` and `received_at`. A step without a pill has no ' +
  'bar. `final` means that only backfill can still change the bar. `revision` counts the pills ' +
  'received after the end of the bar. Percentiles are interpolated (type 7 of Hyndman and Fan). ' +
  'With `day=session` a bar spans from the open to the close of the session, including the lunch ' +
  'break; other bars begin at multiples of their length from 00:00 UTC. `from` and `to` are widened ' +
  `to whole bars. \`symbols\` gives the bars of up to ${BARS_SYMBOLS_MAX} symbols in one call, by ` +
  'time, then by symbol; a page may end between the symbols of a step. Longest window: ' +
  `${Object.entries(BAR_RANGES)
    .map(([name, { maxS }]) => `${name} ${maxS / 86_400} days`)
    .join(', ')}.`;

/** A bar and its edges. */
interface Bar {
  readonly bar: Readonly<Record<string, unknown>>;
  readonly startsAt: Micros;
  readonly endsAt: Micros;
}

/** Open, high, low and close are values of pills, and stay exact. */
const KINDS = {
  ...{ mean: 'spread', p05: 'spread', p50: 'spread', p95: 'spread' },
  mean_confidence: 'confidence',
} as const satisfies Readonly<Record<string, FigureKind>>;

type Statistics = Record<keyof typeof KINDS, number>;

type StepsRequest = Pick<BarsRequest, 'symbols' | 'interval' | 'window' | 'after' | 'order'>;

/** The bars of equal length, after the list of columns. */
function selectSteps(
  { symbols, interval, window, after, order }: StepsRequest,
  limit: number,
): Statement {
  // Within a step the symbols ascend in both orders.
  const rest =
    after === undefined
      ? ''
      : "WHERE start != {page:DateTime('UTC')} OR symbol > {page_symbol:String}";
  return {
    query: `FROM bars(symbols = {symbols:Array(String)}, step_s = {step:UInt32}, ${WINDOW_ARGUMENTS})
     ${rest}
     ORDER BY start ${order.toUpperCase()}, symbol LIMIT {limit:UInt32}`,
    params: {
      symbols,
      step: BAR_RANGES[interval].stepS,
      ...windowParameters(window),
      limit,
      ...(after && { page: Math.round(after.start / 1e6), page_symbol: after.symbol }),
    },
  };
}

async function stepBars(
  reader: AnalyticsReader,
  { symbols, isList, interval, window, after, order, limit }: BarsRequest,
  finalUntil: Micros,
): Promise<Bar[]> {
  const { stepS } = BAR_RANGES[interval];
  const { query, params } = selectSteps({ symbols, interval, window, after, order }, limit + 1);
  const columns = isList ? '*' : '* EXCEPT symbol';
  const rows = await reader.select<Statistics & { start: string }>(
    `SELECT ${columns} ${query}`,
    params,
  );
  return rows.map((row) => {
    const startsAt = Date.parse(row.start) * 1_000;
    const endsAt = startsAt + stepS * 1e6;
    const figures = { ...roundFigures(row, KINDS), start: formatTimestamp(startsAt) };
    return { startsAt, endsAt, bar: { ...figures, final: endsAt <= finalUntil } };
  });
}

/** The bars of sessions, after the list of columns. */
function selectSessions(
  symbol: string,
  sessions: readonly SessionHours[],
  order: 'asc' | 'desc',
  limit: number,
): Statement {
  const times = (of: (session: SessionHours) => number) =>
    sessions.map((session) => decimalSeconds(of(session) * 1_000));
  return {
    query: `FROM span_bars(symbol = {symbol:String},
       starts = {starts:Array(DateTime64(6, 'UTC'))}, ends = {ends:Array(DateTime64(6, 'UTC'))})
     ORDER BY span ${order.toUpperCase()} LIMIT {limit:UInt32}`,
    params: {
      symbol,
      starts: times(({ openMs }) => openMs),
      ends: times(({ closeMs }) => closeMs),
      limit,
    },
  };
}

/** The columns of the table with their types: times in µs, doubles rounded as in JSON. */
function typedColumns({ isList, sessions }: BarsRequest): string {
  const rounded = (name: keyof typeof KINDS) =>
    `round(${name}, ${FIGURE_DECIMALS[KINDS[name]]}) AS ${name}`;
  const [start, end] =
    sessions === undefined
      ? ["toDateTime64(start, 6, 'UTC')", 'start + toIntervalSecond({step:UInt32})']
      : ["{starts:Array(DateTime64(6, 'UTC'))}[span]", "{ends:Array(DateTime64(6, 'UTC'))}[span]"];
  return [
    ...(isList ? ['toLowCardinality(symbol) AS symbol'] : []),
    ...(sessions === undefined ? [] : ['{dates:Array(String)}[span] AS session_date']),
    `${start} AS start`,
    ...(sessions === undefined ? [] : [`${end} AS end`]),
    ...['open', 'high', 'low', 'close', 'count', rounded('mean'), rounded('p05')],
    ...[rounded('p50'), rounded('p95'), rounded('mean_confidence'), 'late_count'],
    `(${end} <= {final_until:DateTime64(6, 'UTC')})::Bool AS final`,
    'revision',
  ].join(', ');
}

/** A statement for sessions needs one at least; the same columns of no row. */
const NO_SESSION: SessionHours = {
  date: '1970-01-01',
  openMs: 0,
  closeMs: 1_000,
  spans: [],
} as never;

async function sessionBars(
  reader: AnalyticsReader,
  { symbols: [symbol], order, limit }: BarsRequest,
  sessions: readonly SessionHours[],
  finalUntil: Micros,
): Promise<Bar[]> {
  if (sessions.length === 0) return [];
  const { query, params } = selectSessions(symbol!, sessions, order, limit + 1);
  const rows = await reader.select<Statistics & { span: number }>(
    `SELECT * EXCEPT symbol ${query}`,
    params,
  );
  return rows.map(({ span, ...figures }) => {
    const { date, openMs, closeMs } = sessions[span - 1]!;
    const endsAt = closeMs * 1_000;
    const bar = {
      session_date: date,
      start: formatTimestamp(openMs * 1_000),
      end: formatTimestamp(endsAt),
      ...roundFigures(figures, KINDS),
      final: endsAt <= finalUntil,
    };
    return { startsAt: openMs * 1_000, endsAt, bar };
  });
}

const BarSchema = Type.Object({
  symbol: Type.Optional(Type.String({ description: 'With `symbols`' })),
  session_date: Type.Optional(Type.String({ description: 'Local date, with `day=session`' })),
  ...texts({ start: '2026-11-20T01:02:00.000000Z' }),
  end: Type.Optional(Type.String({ description: 'With `day=session`' })),
  ...numbers({ open: 0.12, high: 0.19, low: 0.11, close: 0.14 }),
  ...integers({ count: 42 }),
  ...numbers({ mean: 0.13, p05: 0.11, p50: 0.13, p95: 0.18, mean_confidence: 83 }),
  ...integers({ late_count: 0 }),
  final: Type.Boolean({ examples: [false] }),
  ...integers({ revision: 3 }),
});

const SESSION_COLUMNS = Object.keys(BarSchema.properties).filter((name) => name !== 'symbol');
const COLUMNS = SESSION_COLUMNS.filter((name) => name !== 'session_date' && name !== 'end');
