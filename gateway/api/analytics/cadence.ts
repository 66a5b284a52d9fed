import { Type } from 'typebox';
import { type Calendar, stateAt } from '../../../lib/calendar/calendar.ts';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import { lateAfterMs } from '../../../lib/signal/cadence.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { parseWindow, toldWindow, type Window } from '../time-range.ts';
import type { CalendarOf } from './calendars.ts';
import type { Desk } from './desk.ts';
import { GAPS_MAX, RANGES } from './limits.ts';
import { SYMBOL, WINDOW, WINDOW_EXAMPLE, WindowSchema } from './parameters.ts';
import { lessTime, NumberOrNull, type Question, type Sources } from './question.ts';

/** Why nothing came. */
export const GAP_REASONS = [
  'lunch_break',
  'market_closed',
  'holiday',
  'generator_late',
  'generator_silent',
  'calendar_unknown',
] as const;
type GapReason = (typeof GAP_REASONS)[number];

interface Gap {
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
}

interface Figures {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly max: number | null;
  readonly n: number;
}

const QUERY = { symbol: SYMBOL, ...WINDOW };

/** `GET /api/analytics/cadence`. */
export function cadenceQuestion(
  { desk, backfillAgeUs }: Sources,
  calendarOf: CalendarOf,
): Question<typeof QUERY, { readonly symbol: string; readonly window: Window }> {
  return {
    name: 'cadence',
    summary: 'How often pills of a symbol came, and when they did not',
    description:
      'From one receive time to the next, of pills that are no backfill. A gap is longer than max(5 s, 5 × ' +
      'the median); the silence before the first pill, since the one before the window, and the one after the ' +
      `last, up to where the log is known, are gaps too, and no intervals. \`because\`: what the calendar says where the market was open for less than that; else ` +
      '`generator_silent` where no pill of any symbol came in it, `generator_late` where others did. ' +
      `At most ${GAPS_MAX} gaps are named, the longest; \`gaps_count\` tells of all.`,
    query: QUERY,
    answer: {
      symbol: Type.String(),
      window: WindowSchema,
      count: Type.Integer({ description: 'Intervals' }),
      interval_ms: Type.Object({ p50: NumberOrNull, p95: NumberOrNull, max: NumberOrNull }),
      expected_ms: NumberOrNull,
      late_after_ms: Type.Number(),
      gaps_count: Type.Integer(),
      gaps: Type.Array(
        Type.Object({
          from: Type.String(),
          to: Type.String(),
          seconds: Type.Number(),
          because: Type.Enum([...GAP_REASONS]),
        }),
      ),
    },
    csvExample:
      'from,to,seconds,because\r\n2026-11-20T02:30:00.000000Z,2026-11-20T03:30:00.000000Z,3600,lunch_break\r\n',
    example: {
      symbol: '7203.T',
      window: WINDOW_EXAMPLE,
      count: 18_210,
      interval_ms: { p50: 980, p95: 2_100, max: 3_600_000 },
      ...{ expected_ms: 980, late_after_ms: 5_000, gaps_count: 1 },
      gaps: [
        {
          from: '2026-11-20T02:30:00.000000Z',
          to: '2026-11-20T03:30:00.000000Z',
          ...{ seconds: 3_600, because: 'lunch_break' },
        },
      ],
    },
    parse(query, now) {
      const window = parseWindow(query, RANGES.cadence, now);
      return window.ok
        ? { ok: true, value: { symbol: query.symbol, window: window.value } }
        : window;
    },
    less: ({ window }) => lessTime(window),
    async find({ symbol, window }, { completeUntil }) {
      const parameters = {
        symbol,
        since: decimalSeconds(window.since),
        until: decimalSeconds(window.until),
      };
      const [figures] = await desk.ask<Figures>(
        `SELECT count() AS n, if(n = 0, NULL, quantileExactInclusive(0.5)(interval_ms)) AS p50,
                if(n = 0, NULL, quantileExactInclusive(0.95)(interval_ms)) AS p95,
                if(n = 0, NULL, max(interval_ms)) AS max
         FROM ${INTERVALS}`,
        parameters,
      );
      const { n, p50, p95, max } = figures!;
      const lateMs = lateAfterMs(p50 ?? undefined);
      const rows = await desk.ask<Gap & { of_all: number }>(GAPS, {
        ...parameters,
        late: lateMs,
        limit: GAPS_MAX,
      });
      const edges = await edgeGaps(desk, parameters, Math.min(window.until, completeUntil), lateMs);
      const gaps = [...edges, ...rows.map(({ from, to, seconds }) => ({ from, to, seconds }))]
        .sort((one, other) => other.seconds - one.seconds)
        .slice(0, GAPS_MAX)
        .sort((one, other) => (one.from < other.from ? -1 : 1));
      const calendar = calendarOf(symbol);
      const rests = gaps.map((gap) => restOf(gap, lateMs, calendar));
      const open = gaps.filter((_, at) => rests[at] === undefined);
      const filled = await filledGaps(desk, symbol, open, backfillAgeUs);
      const told = gaps.map((gap, at) => ({
        ...gap,
        because: rests[at] ?? (filled.has(gap) ? 'generator_late' : 'generator_silent'),
      }));
      const body = {
        symbol,
        window: toldWindow(window),
        count: n,
        interval_ms: { p50, p95, max },
        ...{
          expected_ms: p50,
          late_after_ms: lateMs,
          gaps_count: (rows[0]?.of_all ?? 0) + edges.length,
        },
        gaps: told,
      };
      return { body, table: { columns: ['from', 'to', 'seconds', 'because'], rows: told } };
    },
  };
}

const INTERVALS = `intervals(symbol = {symbol:String},
  since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})`;

/** The longest gaps. */
const GAPS = `
  SELECT since AS from, until AS to, interval_ms / 1000 AS seconds, count() OVER () AS of_all
  FROM ${INTERVALS}
  WHERE interval_ms > {late:Float64}
  ORDER BY interval_ms DESC, since LIMIT {limit:UInt32}`;

/**
 * The silence before the first pill of a window and after the last one, where it is a gap. Of a
 * symbol that never had a pill nobody can say that it is silent.
 * @param end of the window, or up to where the log is known
 */
async function edgeGaps(
  desk: Desk,
  parameters: Readonly<Record<string, unknown>>,
  end: Micros,
  lateMs: number,
): Promise<Gap[]> {
  const [edges] = await desk.ask<Edges>(EDGES, parameters);
  const { before, first, last } = edges!;
  const silences = [
    [before, first ?? end],
    [first === null ? null : last, end],
  ] as const;
  return silences.flatMap(([from, to]) =>
    from !== null && to - from > lateMs * 1_000
      ? [{ from: formatTimestamp(from), to: formatTimestamp(to), seconds: (to - from) / 1e6 }]
      : [],
  );
}

/** Receive times in µs: of the last live pill before the window, and of the first and last in it. */
interface Edges {
  readonly before: Micros | null;
  readonly first: Micros | null;
  readonly last: Micros | null;
}

/** Pills among which the last one before a window is looked for: newest by timestamp, not by receive time. */
const EARLIER_PILLS = 100;

const EDGES = `
  SELECT
    toUnixTimestamp64Micro(minOrNull(received_at)) AS first,
    toUnixTimestamp64Micro(maxOrNull(received_at)) AS last,
    (SELECT toUnixTimestamp64Micro(maxOrNull(received_at)) FROM (
       SELECT received_at FROM pills
       WHERE symbol = {symbol:String} AND NOT backfill
         AND received_at < {since:DateTime64(6, 'UTC')}
         AND timestamp < {since:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
       ORDER BY timestamp DESC LIMIT ${EARLIER_PILLS})) AS before
  FROM pills
  WHERE symbol = {symbol:String} AND NOT backfill
    AND received_at >= {since:DateTime64(6, 'UTC')} AND received_at < {until:DateTime64(6, 'UTC')}
    AND timestamp >= {since:DateTime64(6, 'UTC')} - INTERVAL 7 DAY
    AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE`;

/** Of which gaps a pill of another symbol was received, each asked for by itself: one will do. */
async function filledGaps(
  desk: Desk,
  symbol: string,
  gaps: readonly Gap[],
  backfillAgeUs: number,
): Promise<Set<Gap>> {
  if (gaps.length === 0) return new Set();
  const decimal = (time: string) => time.slice(0, -1).replace('T', ' ');
  const times = gaps.flatMap(({ from, to }, at) => [
    [`since_${at}`, decimal(from)],
    [`until_${at}`, decimal(to)],
  ]);
  const statement = gaps.map((_, at) => anyOther(at)).join(' UNION ALL ');
  const rows = await desk.ask<{ gap: number }>(statement, {
    ...{ symbol, age: backfillAgeUs },
    ...Object.fromEntries(times),
  });
  return new Set(rows.map(({ gap }) => gaps[gap]!));
}

const anyOther = (at: number) => `(
  SELECT toUInt32(${at}) AS gap FROM pills
  WHERE symbol != {symbol:String} AND NOT startsWith(symbol, 'TEST:') AND NOT backfill
    AND received_at > {since_${at}:DateTime64(6, 'UTC')}
    AND received_at < {until_${at}:DateTime64(6, 'UTC')}
    AND timestamp >= {since_${at}:DateTime64(6, 'UTC')} - toIntervalMicrosecond({age:UInt64})
    AND timestamp < {until_${at}:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
  LIMIT 1)`;

/**
 * What the calendar says of a gap; undefined where the market was open for too long of it.
 * @param lateMs so long it may be open and silent
 */
export function restOf(
  { from, to }: Gap,
  lateMs: number,
  calendar: Calendar | 'ALWAYS' | undefined,
): GapReason | undefined {
  if (calendar === undefined) return 'calendar_unknown';
  if (calendar === 'ALWAYS') return undefined;
  const endMs = Date.parse(to);
  let openMs = 0;
  let rest: GapReason | undefined;
  for (let at = Date.parse(from); at < endMs; ) {
    const { state, until = Number.POSITIVE_INFINITY } = stateAt(calendar, at);
    const untilMs = Math.min(until, endMs);
    if (state === 'open') openMs += untilMs - at;
    else if (state === 'unknown') return 'calendar_unknown';
    else rest ??= state === 'closed' ? 'market_closed' : state;
    at = untilMs;
  }
  return openMs <= lateMs ? rest : undefined;
}
