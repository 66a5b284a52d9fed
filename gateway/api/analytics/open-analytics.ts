import type { RouteOptions } from 'fastify';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import { createTurns } from '../../../lib/rate/turns.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { ReadLogEnd } from '../clickhouse/log-end.ts';
import { openReadBytes } from '../clickhouse/read-bytes.ts';
import { openOwnClickHouse, openSelect } from '../clickhouse/select.ts';
import type { ApiConfig } from '../config.ts';
import type { FindUnknown } from '../server/known-symbols.ts';
import { createAnalyticsReader } from './analytics-reader.ts';
import { ANALYTICS_LIMITS } from './limits.ts';
import { analyticsRoutes } from './routes.ts';

/** Makes the analytics routes. While ClickHouse is down, only these routes report it. */
export function openAnalytics(
  options: {
    readonly config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>;
    readonly settings: TopicSettings;
    readonly logEnd: ReadLogEnd;
    readonly markets: Markets;
    readonly findUnknown: FindUnknown;
  },
  life: Lifecycle,
): RouteOptions[] {
  const { config, settings, logEnd, markets, findUnknown } = options;
  const { epoch } = settings;
  const reading = {
    name: 'analytics',
    bounds: ANALYTICS_LIMITS,
    connectionsMax: ANALYTICS_LIMITS.activeMax + 1, // one for the table's coverage
    settings: {
      date_time_output_format: 'iso' as const,
      max_result_rows: String(ANALYTICS_LIMITS.resultRowsMax),
    },
    bytesMax: ANALYTICS_LIMITS.bodyBytesMax,
  };
  const clickhouse = openOwnClickHouse(config, life, reading);
  const select = openSelect(clickhouse, life.log, reading);
  const readBytes = openReadBytes(clickhouse, life.log, reading);
  return analyticsRoutes({
    reader: createAnalyticsReader(select, readBytes, epoch, logEnd),
    epoch,
    backfillAgeUs: settings.backfill_age_ms * 1_000,
    confidenceMax: settings.confidence_max,
    findUnknown,
    turns: createTurns(ANALYTICS_LIMITS),
    nowMicros,
    calendarOf(symbol) {
      const venue = markets.venueOf(symbol);
      return venue === undefined || venue === 'ALWAYS' ? venue : markets.calendar(venue);
    },
  });
}
