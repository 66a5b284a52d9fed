import { Type } from 'typebox';
import { lateAfterMs } from '../../../domain/market/cadence/cadence.ts';
import { type Calendar, stateAt } from '../../../domain/market/calendars/calendar.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { integers, numbers, numbersOrNull, texts } from '../server/example.ts';
import { roundFigure } from '../server/figures.ts';
import type { AnalyticsDeps } from './analytics-query.ts';
import type { AnalyticsReader, Freshness } from './analytics-reader.ts';
import { GAPS_MAX, RANGES } from './limits.ts';
import { type SymbolRequest, symbolQuery } from './symbol-query.ts';
import { WINDOW_ARGUMENTS } from './window-parameters.ts';

/** Why no pill came. */
const GAP_REASONS = [
  ...(['lunch_break', 'market_closed', 'holiday', 'calendar_unknown'] as const),
  ...(['generator_late', 'generator_silent'] as const),
];
type GapReason = (typeof GAP_REASONS)[number];

interface Gap {
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
}

/** `GET /api/analytics/cadence`. */
export function cadenceQuery(deps: AnalyticsDeps) {
  return symbolQuery({
    name: 'cadence',
    summary: 'How often pills of a symbol arrive, and the gaps between them',
    description: DESCRIPTION,
    range: () => RANGES.cadence,
    parameters: {},
    answer: {
      count: Type.Integer({ description: 'Number of intervals', examples: [18_210] }),
      interval_ms: Type.Object(numbersOrNull({ p50: 980, p95: 2_100, max: 3_600_000 })),
      ...numbersOrNull({ expected_ms: 980 }),
      ...numbers({ late_after_ms: 5_000 }),
      ...integers({ gaps_count: 1 }),
      gaps: Type.Array(
        Type.Object({
          ...texts({ from: '2026-11-20T02:30:00.000000Z', to: '2026-11-20T03:30:00.000000Z' }),
          ...numbers({ seconds: 3_600 }),
          because: Type.Enum([...GAP_REASONS]),
        }),
      ),
    },
    run: (request, _, freshness) => run(deps, request, freshness),
  });
}

const DESCRIPTION =
  'Intervals between the receive times of consecutive pills, without backfill. A gap is an interval ' +
  'longer than max(5 s, 5 × the median). The silence before the first pill of the window, since the ' +
  'last pill before the window, and the silence after the last pill, up to where the log is known, ' +
  'also count as gaps, but not as intervals. `because` is the state of the calendar if the market ' +
  'was open for less than that threshold; otherwise `generator_silent` if no pill of any symbol ' +
  `came during the gap, and \`generator_late\` if others did. The longest ${GAPS_MAX} gaps are ` +
  'listed; `gaps_count` counts all.';

async function run(
  { reader, backfillAgeUs, calendarOf }: AnalyticsDeps,
  { symbol, window, parameters }: SymbolRequest,
  { completeUntil }: Freshness,
) {
  type Figures = { n: number } & Record<'p50' | 'p95' | 'max', number | null>;
  const [figures] = await reader.select<Figures>(FIGURES, parameters);
  const { n } = figures!;
  const lateMs = lateAfterMs(figures!.p50 ?? undefined);
  const bounds = { ...parameters, late: lateMs, limit: GAPS_MAX };
  const inner = await reader.select<Gap & { of_all: number }>(LONGEST_GAPS, bounds);
  const edges = await edgeGaps(reader, parameters, Math.min(window.until, completeUntil), lateMs);
  const between = inner.map(({ from, to, seconds }) => {
    return { from, to, seconds: roundFigure('seconds', seconds) };
  });
  const longest = [...edges, ...between]
    .sort((one, other) => other.seconds - one.seconds)
    .slice(0, GAPS_MAX)
    .sort((one, other) => (one.from < other.from ? -1 : 1));
  const calendar = calendarOf(symbol);
  const closures = longest.map((gap) => closureOf(gap, lateMs, calendar));
  const unexplained = longest.filter((_, at) => closures[at] === undefined);
  const filled = await gapsWithOthers(reader, symbol, unexplained, backfillAgeUs);
  const gaps = longest.map((gap, at) => ({
    ...gap,
    because: closures[at] ?? (filled.has(gap) ? 'generator_late' : 'generator_silent'),
  }));
  const intervalMs = (figure: number | null) => roundFigure('ms', figure);
  const p50 = intervalMs(figures!.p50);
  const body = {
    count: n,
    interval_ms: { p50, p95: intervalMs(figures!.p95), max: intervalMs(figures!.max) },
    expected_ms: p50,
    late_after_ms: lateMs,
    gaps_count: (inner[0]?.of_all ?? 0) + edges.length,
    gaps,
  };
  return { body, table: { columns: ['from', 'to', 'seconds', 'because'], rows: gaps } };
}

const INTERVALS = `intervals(symbol = {symbol:String}, ${WINDOW_ARGUMENTS})`;

const FIGURES = `
  SELECT count() AS n, if(n = 0, NULL, quantileExactInclusive(0.5)(interval_ms)) AS p50,
         if(n = 0, NULL, quantileExactInclusive(0.95)(interval_ms)) AS p95,
         if(n = 0, NULL, max(interval_ms)) AS max
  FROM ${INTERVALS}`;

const LONGEST_GAPS = `
  SELECT since AS from, until AS to, interval_ms / 1000 AS seconds, count() OVER () AS of_all
  FROM ${INTERVALS}
  WHERE interval_ms > {late:Float64}
  ORDER BY interval_ms DESC, since LIMIT {limit:UInt32}`;

/**
 * The gaps before the first and after the last pill of a window. A symbol that never had a pill has
 * none: its silence has no beginning.
 * @param end of the window, or where the log is known to
 */
async function edgeGaps(
  reader: AnalyticsReader,
  parameters: Readonly<Record<string, unknown>>,
  end: Micros,
  lateMs: number,
): Promise<Gap[]> {
  // Receive times in µs: the last live pill before the window, the first and the last in it.
  const [edges] = await reader.select<Record<'before' | 'first' | 'last', Micros | null>>(
    EDGES,
    parameters,
  );
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

/** How many pills are searched for the last one before a window: sorted by timestamp, not receipt. */
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

/** The gaps during which a pill of another symbol came; one subquery each, which stops at one pill. */
async function gapsWithOthers(
  reader: AnalyticsReader,
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
  const parameters = { symbol, age: backfillAgeUs, ...Object.fromEntries(times) };
  const rows = await reader.select<{ gap: number }>(statement, parameters);
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
 * Explains a gap by the calendar; undefined if the market was open for too long of it.
 * @param lateMs how long an open market may be silent
 */
export function closureOf(
  { from, to }: Gap,
  lateMs: number,
  calendar: Calendar | 'ALWAYS' | undefined,
): GapReason | undefined {
  if (calendar === undefined) return 'calendar_unknown';
  if (calendar === 'ALWAYS') return undefined;
  const endMs = Date.parse(to);
  let openMs = 0;
  let closure: GapReason | undefined;
  for (let at = Date.parse(from); at < endMs; ) {
    const { state, until = Number.POSITIVE_INFINITY } = stateAt(calendar, at);
    const untilMs = Math.min(until, endMs);
    if (state === 'open') openMs += untilMs - at;
    else if (state === 'unknown') return 'calendar_unknown';
    else closure ??= state === 'closed' ? 'market_closed' : state;
    at = untilMs;
  }
  return openMs <= lateMs ? closure : undefined;
}
