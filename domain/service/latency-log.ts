import { type RawBuilder, sql } from 'kysely';
import type { Histogram } from 'prom-client';
import type { Log } from '../../lib/log/log.ts';
import { LATENCY_BUCKETS_S } from '../../lib/metrics/metrics.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { runEvery } from '../../lib/timing/run-every.ts';

/** Ways from a received pill to a customer whose latency is kept. */
export type LatencyChannel = 'stream' | 'webhook';

const EVERY_MS = 60_000;

/**
 * Adds the counts of a histogram to the present hour about once a minute, and once more at the close.
 * A failed write is made up for by the next one; counts of a process that is killed are lost.
 * @param of.histogram seconds, with the buckets LATENCY_BUCKETS_S and no labels
 */
export function startLatencyLog(of: {
  readonly db: Database;
  readonly channel: LatencyChannel;
  readonly histogram: Histogram;
  readonly log: Log;
  readonly everyMs?: number;
}) {
  const { db, channel, histogram, log, everyMs = EVERY_MS } = of;
  let written: readonly number[] = LATENCY_BUCKETS_S.map(() => 0).concat(0);
  const run = async () => {
    const counts = await countsOf(histogram);
    const added = counts.map((count, bucket) => count - written[bucket]!);
    if (added.every((count) => count === 0)) return;
    await addCounts(db, channel, added);
    written = counts;
  };
  const repetition = runEvery({ name: 'latency log', everyMs, jitter: 0.1, log, run });
  return {
    async close(): Promise<void> {
      await repetition.close();
      await run().catch((err) => log.warn({ err }, 'latencies of the last minute are lost'));
    },
  };
}

/** Counts by bucket; the histogram itself has cumulative ones. */
async function countsOf(histogram: Histogram): Promise<readonly number[]> {
  const { values } = await histogram.get();
  const cumulative = values
    .filter(({ metricName }) => metricName?.endsWith('_bucket') === true)
    .map(({ value }) => value);
  const all = cumulative.length === 0 ? LATENCY_BUCKETS_S.map(() => 0).concat(0) : cumulative;
  return all.map((count, bucket) => count - (all[bucket - 1] ?? 0));
}

async function addCounts(db: Database, channel: LatencyChannel, counts: readonly number[]) {
  const sums: RawBuilder<unknown> = sql`
    SELECT array_agg(a + b ORDER BY bucket)
    FROM unnest(latency_hours.counts, excluded.counts) WITH ORDINALITY AS u(a, b, bucket)`;
  await sql`
    INSERT INTO latency_hours (hour, channel, counts)
    VALUES (date_trunc('hour', now(), 'UTC'), ${channel}, ${counts}::bigint[])
    ON CONFLICT (hour, channel) DO UPDATE SET counts = (${sums})`.execute(db);
}
