import type { RouteOptions } from 'fastify';
import { databaseName, openClickHouse } from '../../../lib/clickhouse.ts';
import { nowMicros } from '../../../lib/clock.ts';
import type { Life } from '../../../lib/run.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { ApiConfig } from '../config.ts';
import type { AskLogEnd } from '../log-end.ts';
import { createTurnstile } from '../turnstile.ts';
import { openCalendarOf } from './calendars.ts';
import { openDesk } from './desk.ts';
import { ANALYTICS_LIMITS } from './limits.ts';
import { analyticsEndpoints } from './questions.ts';

export interface AnalyticsOptions {
  readonly config: Pick<
    ApiConfig,
    'clickhouseUrl' | 'namespace' | 'calendarOverrides' | 'venueRules'
  >;
  readonly settings: TopicSettings;
  readonly logEnd: AskLogEnd;
}

/**
 * Makes the routes of the analytics. ClickHouse may be away: then they say so, nothing else does.
 * @throws when the file of overrides cannot be read
 */
export function openAnalytics(of: AnalyticsOptions, life: Life): RouteOptions[] {
  const { config, settings, logEnd } = of;
  const calendarOf = openCalendarOf(config, life);
  const clickhouse = openClickHouse({
    url: config.clickhouseUrl,
    database: databaseName(config.namespace),
    requestTimeoutMs: ANALYTICS_LIMITS.statementMs,
    connectionsMax: ANALYTICS_LIMITS.readingMax + 1, // one for how far the table is
  });
  life.onStop('clickhouse of analytics', () => clickhouse.close());
  const { epoch } = settings;
  const desk = openDesk({ clickhouse, epoch, log: life.log, logEnd });
  const backfillAgeUs = settings.backfill_age_ms * 1_000;
  const turnstile = createTurnstile(ANALYTICS_LIMITS);
  return analyticsEndpoints({ desk, epoch, backfillAgeUs, turnstile, nowMicros }, calendarOf);
}
