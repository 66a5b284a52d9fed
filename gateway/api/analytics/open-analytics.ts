import type { RouteOptions } from 'fastify';
import { openCalendars } from '../../../lib/calendar/calendar.ts';
import { venueOf } from '../../../lib/calendar/venue.ts';
import { databaseName, openClickHouse } from '../../../lib/clickhouse.ts';
import { nowMicros } from '../../../lib/clock.ts';
import type { Life } from '../../../lib/run.ts';
import type { ApiConfig } from '../config.ts';
import type { LatestView } from '../view.ts';
import { openDesk } from './desk.ts';
import { ANALYTICS_LIMITS } from './limits.ts';
import { analyticsEndpoints } from './questions.ts';

/** Makes the routes of the analytics. ClickHouse may be away: then they say so, nothing else does. */
export function openAnalytics(
  of: {
    readonly config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>;
    readonly epoch: string;
    readonly view: Pick<LatestView, 'processed'>;
  },
  life: Life,
): RouteOptions[] {
  const clickhouse = openClickHouse({
    url: of.config.clickhouseUrl,
    database: databaseName(of.config.namespace),
    requestTimeoutMs: ANALYTICS_LIMITS.executionS * 1_000 + 1_000,
    connectionsMax: ANALYTICS_LIMITS.runningMax,
  });
  life.onStop('clickhouse of analytics', () => clickhouse.close());
  const { epoch } = of;
  const logged = () => of.view.processed();
  const desk = openDesk({ clickhouse, epoch, log: life.log, nowMicros, logged });
  const calendarOf = openCalendars();
  return analyticsEndpoints({ desk, epoch, nowMicros }, (symbol) => {
    const venue = venueOf(symbol);
    return venue === undefined ? undefined : calendarOf(venue);
  });
}
