import { clickHouseErrorName } from '../lib/clickhouse/clickhouse-client.ts';
import type { Log } from '../lib/log/log.ts';
import { noteDependency } from '../lib/metrics/dependencies.ts';
import { retryForever } from '../lib/timing/backoff.ts';

/**
 * Returns a function that repeats an attempt until ClickHouse takes it, or the signal is aborted.
 * @param of what the log lines name besides the error
 */
export function retryOfClickHouse(log: Log, of: object = {}) {
  return <T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    const noted = async () => {
      const result = await attempt();
      noteDependency('clickhouse', true);
      return result;
    };
    return retryForever(noted, {
      firstMs: 200,
      maxMs: 3_000,
      signal,
      onError(error, attempts) {
        noteDependency('clickhouse', clickHouseErrorName(error) !== undefined);
        log.warn({ err: error, attempts, ...of }, 'ClickHouse does not answer; waiting');
      },
    });
  };
}
