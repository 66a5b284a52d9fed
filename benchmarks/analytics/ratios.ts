import type { Extras } from '../results.ts';
import type { AnalyticsResult } from './analytics.ts';

/** The same question straight to ClickHouse against that over the API, at the median. */
export function analyticsExtras({ queries }: AnalyticsResult): Extras {
  const ratios = queries
    .filter(({ over }) => over === 'api')
    .flatMap((asked) => {
      const { query, pills } = asked;
      const bare = queries.find(
        (one) => one.over === 'bare' && one.query === query && one.pills === pills,
      );
      if (bare === undefined) return [];
      return [
        {
          name: `ClickHouse ÷ API, p50, ${query} over ${pills.toLocaleString('en')} pills`,
          ratio: bare.latency.p50 / asked.latency.p50,
          valid: bare.failed === 0 && asked.failed === 0,
        },
      ];
    });
  return { ratios };
}
