import { setImmediate as turn } from 'node:timers/promises';
import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse.ts';
import { BASELINE_PILLS, BASELINE_PILLS_MIN, ROBUST_Z_MAX } from '../../../lib/signal/baseline.ts';
import { createRollingWindow, robustZ } from '../../../lib/signal/rolling-window.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { parseWindow, toldWindow, type Window } from '../time-range.ts';
import { OUTLIER_PILLS_MAX, RANGES } from './limits.ts';
import { SYMBOL, WINDOW, WINDOW_EXAMPLE, WindowSchema, whole } from './parameters.ts';
import { lessTime, type Question, type Sources } from './question.ts';

/** How many pills are looked at before others have their turn: a ms or two. */
const PILLS_PER_TURN = 500;

interface Pill {
  readonly partition: number;
  readonly offset: number;
  readonly id: string;
  readonly timestamp: string;
  readonly gross_spread_percent: number;
  /** Before the time asked for: it is only compared with. */
  readonly before: boolean;
}

const QUERY = {
  symbol: SYMBOL,
  ...WINDOW,
  threshold: Type.Optional(
    Type.Number({
      minimum: 1,
      maximum: 1_000,
      default: ROBUST_Z_MAX,
      description: `|z| from which a pill is one; ${ROBUST_Z_MAX} by default`,
    }),
  ),
  limit: whole(1, 1_000, 100, 'Pills that are told, those with the largest |z|'),
};

interface Asked {
  readonly symbol: string;
  readonly threshold: number;
  readonly limit: number;
  readonly window: Window;
}

const BASELINE = `last ${BASELINE_PILLS} pills before it`;

/** `GET /api/analytics/outliers`. */
export function outliersQuestion({ desk }: Sources): Question<typeof QUERY, Asked> {
  return {
    name: 'outliers',
    summary: 'Pills whose spread was unlike those before it',
    description:
      'z = 0.6745 × (spread − median) / MAD over the pills of the symbol before it, by order time ' +
      `(the modified z-score of Iglewicz and Hoaglin, 1993): the last ${BASELINE_PILLS}, and ` +
      `${BASELINE_PILLS_MIN} at the least, of the 31 days before. Where the MAD is 0 nothing is called an outlier. Largest time: ` +
      `one day or ${OUTLIER_PILLS_MAX} pills.`,
    query: QUERY,
    answer: {
      symbol: Type.String(),
      window: WindowSchema,
      method: Type.String(),
      threshold: Type.Number(),
      baseline: Type.String(),
      count: Type.Integer({ description: 'Of all; `data` may have fewer' }),
      data: Type.Array(
        Type.Object({
          cursor: Type.String(),
          id: Type.String(),
          symbol: Type.String(),
          timestamp: Type.String(),
          gross_spread_percent: Type.Number(),
          median: Type.Number(),
          mad: Type.Number(),
          z: Type.Number(),
        }),
      ),
    },
    csvExample: 'cursor,id,symbol,timestamp,gross_spread_percent,median,mad,z\r\n',
    example: {
      symbol: '7203.T',
      window: WINDOW_EXAMPLE,
      method: 'robust_z',
      threshold: ROBUST_Z_MAX,
      baseline: BASELINE,
      count: 1,
      data: [
        {
          ...{ cursor: '3-99', id: 'p-4', symbol: '7203.T' },
          timestamp: '2026-11-20T00:31:00.000000Z',
          ...{ gross_spread_percent: 0.9, median: 0.12, mad: 0.02, z: 26.3 },
        },
      ],
    },
    parse(query, now) {
      const window = parseWindow(query, RANGES.outliers, now);
      if (!window.ok) return window;
      const { symbol, threshold = ROBUST_Z_MAX, limit = 100 } = query;
      return { ok: true, value: { symbol, threshold, limit, window: window.value } };
    },
    less: ({ window }) => lessTime(window),
    async find({ symbol, threshold, limit, window }) {
      const pills = await desk.ask<Pill>(STATEMENT, {
        symbol,
        since: decimalSeconds(window.since),
        until: decimalSeconds(window.until),
        baseline: BASELINE_PILLS,
        limit: OUTLIER_PILLS_MAX + 1,
      });
      if (pills.length > OUTLIER_PILLS_MAX) {
        const detail = `There are more than ${OUTLIER_PILLS_MAX} pills in the time.`;
        throw new NoAnswer('heavy', undefined, detail);
      }
      const found = await findOutliers(pills, threshold);
      const data = found
        .sort((one, other) => Math.abs(other.z) - Math.abs(one.z))
        .slice(0, limit)
        .map(({ pill, median, mad, z }) => ({
          cursor: formatCursor(pill.partition, pill.offset),
          id: pill.id,
          symbol,
          timestamp: pill.timestamp,
          gross_spread_percent: pill.gross_spread_percent,
          ...{ median, mad, z },
        }));
      const method = { method: 'robust_z', threshold, baseline: BASELINE };
      return {
        body: { symbol, window: toldWindow(window), ...method, count: found.length, data },
        table: { columns: COLUMNS, rows: data },
      };
    },
  };
}

const COLUMNS = [
  ...['cursor', 'id', 'symbol', 'timestamp'],
  ...['gross_spread_percent', 'median', 'mad', 'z'],
];

/** The pills of the time, and before them those that the first ones are compared with. */
const STATEMENT = `
  SELECT * FROM
  (
    SELECT partition, offset, id, timestamp, gross_spread_percent, order_time, 1 AS before
    FROM pills_once
    WHERE symbol = {symbol:String}
      AND timestamp >= {since:DateTime64(6, 'UTC')} - INTERVAL 31 DAY
      AND timestamp < {since:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
      AND order_time < {since:DateTime64(6, 'UTC')}
    ORDER BY order_time DESC, offset DESC LIMIT {baseline:UInt32}
    UNION ALL
    SELECT partition, offset, id, timestamp, gross_spread_percent, order_time, 0 AS before
    FROM pills_once
    WHERE symbol = {symbol:String}
      AND order_time >= {since:DateTime64(6, 'UTC')} AND order_time < {until:DateTime64(6, 'UTC')}
      AND timestamp >= {since:DateTime64(6, 'UTC')}
      AND timestamp < {until:DateTime64(6, 'UTC')} + INTERVAL 5 MINUTE
    ORDER BY order_time, offset LIMIT {limit:UInt32}
  )
  ORDER BY order_time, offset`;

interface Outlier {
  readonly pill: Pill;
  readonly median: number;
  readonly mad: number;
  readonly z: number;
}

async function findOutliers(pills: readonly Pill[], threshold: number): Promise<Outlier[]> {
  const baseline = createRollingWindow(BASELINE_PILLS);
  const found: Outlier[] = [];
  for (const [at, pill] of pills.entries()) {
    if (at % PILLS_PER_TURN === PILLS_PER_TURN - 1) await turn();
    const value = pill.gross_spread_percent;
    if (!pill.before && baseline.length >= BASELINE_PILLS_MIN) {
      const median = baseline.median();
      const mad = baseline.mad();
      const z = robustZ(value, median, mad);
      if (z !== null && Math.abs(z) >= threshold) found.push({ pill, median, mad, z });
    }
    baseline.push(value);
  }
  return found;
}
