import type { Counts, Sample } from './sample.ts';

/** Rates and latencies of the platform between two samples. */
export type Figures = ReturnType<typeof figuresBetween>;

/**
 * Computes the figures between two samples from the processes that answered both times. If a process
 * missed a sample, it is unknown how much of its count is new.
 */
export function figuresBetween(before: Sample, now: Sample) {
  const seconds = (now.atMs - before.atMs) / 1000;
  const both = [...now.counts].flatMap(([name, to]) => {
    const from = before.counts.get(name);
    return from === undefined ? [] : [{ from, to }];
  });
  // A restarted process counts from 0.
  const perS = (name: Exclude<keyof Counts, 'receiveToSend'>) =>
    both.reduce((sum, { from, to }) => sum + Math.max(0, to[name] - from[name]), 0) / seconds;
  const counts = new Map<number, number>();
  for (const { from, to } of both) {
    for (const [bound, count] of to.receiveToSend) {
      const more = Math.max(0, count - (from.receiveToSend.get(bound) ?? 0));
      counts.set(bound, (counts.get(bound) ?? 0) + more);
    }
  }
  const p50 = quantile(counts, 0.5);
  const p99 = quantile(counts, 0.99);
  return {
    receivedPerS: perS('received'),
    acknowledgedPerS: perS('acknowledged'),
    deliveriesPerS: perS('deliveries'),
    lag: now.lag,
    sockets: now.sockets,
    /** From receive to the first send; undefined if no pill was sent. */
    receiveToSendMs:
      p50 === undefined || p99 === undefined ? undefined : { p50: p50 * 1000, p99: p99 * 1000 },
    unreachable: now.unreachable,
  };
}

/**
 * Quantile of a histogram with cumulative buckets, linear within a bucket, like `histogram_quantile`
 * of Prometheus; a quantile beyond the last bound is that bound.
 * @param counts number of values up to each bound, +Infinity included
 * @returns undefined for an empty histogram
 */
export function quantile(counts: ReadonlyMap<number, number>, share: number): number | undefined {
  const buckets = [...counts].sort(([one], [other]) => one - other);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total === 0) return undefined;
  const rank = share * total;
  let from = 0;
  let below = 0;
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      if (!Number.isFinite(bound)) return from;
      return from + ((bound - from) * (rank - below)) / (count - below);
    }
    from = bound;
    below = count;
  }
  return from;
}
