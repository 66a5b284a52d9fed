import type { ReadRows } from './attempt-rows.ts';

/** Hours that the log of attempts keeps: 30 days. */
export const HEALTH_HOURS = { max: 720, byDefault: 24 } as const;

/** The attempts of an hour that had any. */
export interface HealthHour {
  /** Start of the hour, seconds since 1970. */
  readonly hour_s: number;
  readonly delivered: number;
  /** Attempts that failed and are repeated. */
  readonly retried: number;
  /** Messages given up after the last attempt, or because they were too old. */
  readonly given_up: number;
  /** Of all attempts, from start to answer; exact within 1 %. */
  readonly p50_us: number;
  readonly p99_us: number;
}

/** Attempts at an endpoint by hour, oldest first. @throws what `read` throws */
export function readHealth(
  read: ReadRows,
  of: { readonly endpointId: string; readonly hours: number },
): Promise<readonly HealthHour[]> {
  const hours = Math.max(1, Math.min(of.hours, HEALTH_HOURS.max));
  return read<HealthHour>(
    `SELECT toUnixTimestamp(toStartOfHour(at)) AS hour_s,
            countIf(outcome = 'delivered') AS delivered, countIf(outcome = 'retry') AS retried,
            countIf(outcome IN ('failed', 'expired')) AS given_up,
            quantileDD(0.01, 0.5)(latency_us) AS p50_us,
            quantileDD(0.01, 0.99)(latency_us) AS p99_us
     FROM webhook_attempts
     WHERE endpoint_id = {endpoint:String}
       AND at >= toStartOfHour(now()) - toIntervalHour({hours:UInt16} - 1)
     GROUP BY hour_s ORDER BY hour_s`,
    { endpoint: of.endpointId, hours },
  );
}
