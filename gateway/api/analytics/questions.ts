import type { RouteOptions } from 'fastify';
import { barsQuestion } from './bars.ts';
import { cadenceQuestion } from './cadence.ts';
import type { CalendarOf } from './calendars.ts';
import { confidenceQuestion } from './confidence.ts';
import { correlationQuestion } from './correlation.ts';
import { createKeeper } from './keeper.ts';
import { moversQuestion } from './movers.ts';
import { outliersQuestion } from './outliers.ts';
import { questionEndpoint, type Sources } from './question.ts';
import { statesQuestion } from './states.ts';
import { summaryQuestion } from './summary.ts';

/** The endpoints below `/api/analytics/`. */
export function analyticsEndpoints(sources: Sources, calendarOf: CalendarOf): RouteOptions[] {
  const keep = createKeeper(sources.turnstile);
  return [
    questionEndpoint(barsQuestion(sources, calendarOf), sources, keep),
    questionEndpoint(summaryQuestion(sources), sources, keep),
    questionEndpoint(statesQuestion(sources), sources, keep),
    questionEndpoint(moversQuestion(sources), sources, keep),
    questionEndpoint(outliersQuestion(sources), sources, keep),
    questionEndpoint(correlationQuestion(sources), sources, keep),
    questionEndpoint(cadenceQuestion(sources, calendarOf), sources, keep),
    questionEndpoint(confidenceQuestion(sources), sources, keep),
  ];
}
