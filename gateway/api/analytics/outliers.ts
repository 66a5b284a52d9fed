import { setImmediate as turn } from 'node:timers/promises';
import { Type } from 'typebox';
import {
  BASELINE_PILLS,
  BASELINE_PILLS_MIN,
  ROBUST_Z_MAX,
} from '../../../domain/market/cadence/baseline.ts';
import { createRollingWindow, robustZ } from '../../../domain/market/cadence/rolling-window.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { QueryError } from '../clickhouse/query-error.ts';
import { numbers, texts } from '../server/example.ts';
import { roundFigure } from '../server/figures.ts';
import { whole } from '../server/schemas.ts';
import type { AnalyticsDeps } from './analytics-query.ts';
import { OUTLIER_PILLS_MAX, RANGES } from './limits.ts';
import { symbolQuery } from './symbol-query.ts';

/** Pills judged before the event loop gets a turn: a ms or two. */
const PILLS_PER_TURN = 500;

interface Pill {
  readonly partition: number;
  readonly offset: number;
  readonly id: string;
  readonly timestamp: string;
  readonly gross_spread_percent: number;
  /** Before the window: only the baseline includes it. */
  readonly before: boolean;
}

const PARAMETERS = {
  threshold: Type.Optional(
    Type.Number({
      minimum: 1,
      maximum: 1_000,
      default: ROBUST_Z_MAX,
      description: `The smallest |z| of an outlier; ${ROBUST_Z_MAX} by default`,
    }),
  ),
  limit: whole(1, 1_000, 100, 'Pills in the answer, those with the largest |z|'),
};

const BASELINE = `last ${BASELINE_PILLS} pills before it`;

/** `GET /api/analytics/outliers`. */
export function outliersQuery({ reader }: AnalyticsDeps) {
  return symbolQuery({
    name: 'outliers',
    summary: 'Pills whose spread deviates from the pills before them',
    description:
      'z = 0.6745 × (spread − median) / MAD over the preceding pills of the symbol, by order time ' +
      `(the modified z-score of Iglewicz and Hoaglin, 1993). The baseline is the last ${BASELINE_PILLS} ` +
      `pills, at least ${BASELINE_PILLS_MIN}, of the preceding 31 days. If the MAD is 0, no pill is an ` +
      `outlier. Longest window: one day or ${OUTLIER_PILLS_MAX} pills.`,
    range: () => RANGES.outliers,
    parameters: PARAMETERS,
    answer: ANSWER,
    async run({ symbol, parameters }, { threshold = ROBUST_Z_MAX, limit = 100 }) {
      const pills = await reader.select<Pill>(STATEMENT, {
        ...parameters,
        baseline: BASELINE_PILLS,
        limit: OUTLIER_PILLS_MAX + 1,
      });
      if (pills.length > OUTLIER_PILLS_MAX) {
        const detail = `The window has more than ${OUTLIER_PILLS_MAX} pills.`;
        throw new QueryError('heavy', undefined, detail);
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
          median: roundFigure('spread', median),
          mad: roundFigure('spread', mad),
          z: roundFigure('z', z),
        }));
      const method = { method: 'robust_z', threshold, baseline: BASELINE };
      return {
        body: { ...method, count: found.length, data },
        table: { columns: Object.keys(ANSWER.data.items.properties), rows: data },
      };
    },
  });
}

const ANSWER = {
  ...texts({ method: 'robust_z', baseline: BASELINE }),
  ...numbers({ threshold: ROBUST_Z_MAX }),
  count: Type.Integer({ description: 'All outliers; `data` may hold fewer', examples: [1] }),
  data: Type.Array(
    Type.Object({
      ...texts({ cursor: '3-99', id: 'p-4', symbol: '7203.T' }),
      ...texts({ timestamp: '2026-11-20T00:31:00.000000Z' }),
      ...numbers({ gross_spread_percent: 0.9, median: 0.12, mad: 0.02, z: 26.3 }),
    }),
  ),
};

/** The pills of the window, preceded by the baseline of the first ones. */
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

async function findOutliers(pills: readonly Pill[], threshold: number) {
  const baseline = createRollingWindow(BASELINE_PILLS);
  const found: { pill: Pill; median: number; mad: number; z: number }[] = [];
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
