import type { RouteOptions } from 'fastify';
import { type AnalyticsDeps, queryEndpoint } from './analytics-query.ts';
import { createAnswerCache } from './answer-cache.ts';
import { barsQuery } from './bars.ts';
import { cadenceQuery } from './cadence-query.ts';
import { confidenceQuery } from './confidence.ts';
import { correlationQuery } from './correlation.ts';
import { moversQuery } from './movers.ts';
import { outliersQuery } from './outliers.ts';
import { statesQuery } from './states.ts';
import { summaryQuery } from './summary.ts';

/** The endpoints below `/api/analytics/`. */
export function analyticsRoutes(deps: AnalyticsDeps): RouteOptions[] {
  const answers = createAnswerCache(deps.turns);
  return [
    queryEndpoint(barsQuery(deps), deps, answers),
    queryEndpoint(summaryQuery(deps), deps, answers),
    queryEndpoint(statesQuery(deps), deps, answers),
    queryEndpoint(moversQuery(deps), deps, answers),
    queryEndpoint(outliersQuery(deps), deps, answers),
    queryEndpoint(correlationQuery(deps), deps, answers),
    queryEndpoint(cadenceQuery(deps), deps, answers),
    queryEndpoint(confidenceQuery(deps), deps, answers),
  ];
}
