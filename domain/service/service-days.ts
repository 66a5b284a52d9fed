import { sql } from 'kysely';
import { LATENCY_BUCKETS_S } from '../../lib/metrics/metrics.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { LatencyChannel } from './latency-log.ts';

export const SERVICE_HISTORY_LIMITS = { days: 30, incidents: 100 } as const;

/** An incident whose process says nothing for this long ended when it was last seen. */
const SILENT_AFTER_S = 120;
/** The promise: pills reach customers within this time. */
const PROMISE_S = 0.1;
const MS_PER_S = 1_000;

export type ServiceHistory = Awaited<ReturnType<typeof readServiceHistory>>;

/** How well the service ran on the last 30 UTC days, newest first, and its incidents. */
export async function readServiceHistory(db: Database) {
  const { days, incidents: incidentsMax } = SERVICE_HISTORY_LIMITS;
  const since = sql`date_trunc('day', now(), 'UTC') - make_interval(days => ${days - 1})`;
  const latencies = await sql<{ day: string; channel: LatencyChannel; counts: string[] }>`
    SELECT day, channel, array_agg(pills ORDER BY bucket) AS counts FROM (
      SELECT to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, channel, bucket,
        sum(pills) AS pills
      FROM latency_hours CROSS JOIN unnest(counts) WITH ORDINALITY AS u(pills, bucket)
      WHERE hour >= ${since} GROUP BY 1, 2, 3) buckets
    GROUP BY 1, 2`.execute(db);
  const availability = await sql<{ day: string; ok_share: number | null }>`
    SELECT to_char(d.day, 'YYYY-MM-DD') AS day,
      sum(ok_s) / nullif(sum(ok_s + degraded_s), 0) AS ok_share
    FROM generate_series(${since}, now(), '1 day') AS s(start)
    CROSS JOIN LATERAL (SELECT (s.start AT TIME ZONE 'UTC')::date AS day) d
    LEFT JOIN availability_hours a ON (a.hour AT TIME ZONE 'UTC')::date = d.day
    GROUP BY d.day ORDER BY d.day DESC`.execute(db);
  const incidents = await sql<{ component: string; began_at: Date; ended_at: Date | null }>`
    SELECT component, began_at, CASE
      WHEN is_over OR seen_at < now() - make_interval(secs => ${SILENT_AFTER_S}) THEN seen_at
      END AS ended_at
    FROM service_incidents WHERE began_at >= ${since}
    ORDER BY began_at DESC LIMIT ${incidentsMax}`.execute(db);
  const latencyOf = (day: string, channel: LatencyChannel) => {
    const row = latencies.rows.find((one) => one.day === day && one.channel === channel);
    return row === undefined ? null : latencyFigures(row.counts.map(Number));
  };
  return {
    days: availability.rows.map(({ day, ok_share: okShare }) => ({
      ...{ day, okShare },
      stream: latencyOf(day, 'stream'),
      webhook: latencyOf(day, 'webhook'),
    })),
    incidents: mergeIncidents(
      incidents.rows.map(({ component, began_at: beganAt, ended_at: endedAt }) => ({
        ...{ component, beganAt, endedAt },
      })),
    ),
  };
}

/**
 * Figures of pills counted by bucket. Percentiles are interpolated within a bucket, as Prometheus
 * does; the share within the promise is exact, because its bound is one of a bucket.
 */
export function latencyFigures(counts: readonly number[]) {
  const pills = counts.reduce((sum, count) => sum + count, 0);
  const bounds = [0, ...LATENCY_BUCKETS_S];
  const at = (share: number) => {
    let left = share * pills;
    for (const [bucket, count] of counts.entries()) {
      if (left > count) {
        left -= count;
        continue;
      }
      const [from, to] = [bounds[bucket]!, bounds[bucket + 1] ?? bounds[bucket]!];
      return (from + (count === 0 ? 0 : (left / count) * (to - from))) * MS_PER_S;
    }
    return bounds.at(-1)! * MS_PER_S;
  };
  const within = counts.slice(0, LATENCY_BUCKETS_S.indexOf(PROMISE_S) + 1);
  return {
    pills,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    promiseShare: within.reduce((sum, count) => sum + count, 0) / pills,
  };
}

interface Incident {
  readonly component: string;
  readonly beganAt: Date;
  /** null = it goes on. */
  readonly endedAt: Date | null;
}

/** Joins what several processes saw of the same failure; newest first. */
export function mergeIncidents(incidents: readonly Incident[]): readonly Incident[] {
  const merged: Incident[] = [];
  const oldestFirst = [...incidents].sort((a, b) => a.beganAt.getTime() - b.beganAt.getTime());
  for (const incident of oldestFirst) {
    const index = merged.findIndex(
      ({ component, endedAt }) =>
        component === incident.component && (endedAt === null || endedAt >= incident.beganAt),
    );
    const before = merged[index];
    if (before === undefined) merged.push(incident);
    else merged[index] = { ...before, endedAt: laterEnd(before.endedAt, incident.endedAt) };
  }
  return merged.reverse();
}

function laterEnd(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return null;
  return a > b ? a : b;
}
