import type { Counts, Sample } from './sample.ts';

/** How the platform did between two samples. */
export interface Figures {
  readonly receivedPerS: number;
  readonly acknowledgedPerS: number;
  readonly deliveriesPerS: number;
  readonly lag: Readonly<Record<string, number>>;
  readonly sockets: number;
  /** From receive to the first send; undefined where nobody got a pill. */
  readonly receiveToSendMs: { readonly p50: number; readonly p99: number } | undefined;
  readonly silent: readonly string[];
}

/**
 * Tells what was done between two samples, by the processes that answered both times: of one that
 * was silent nobody knows how much of its count is new.
 */
export function figuresBetween(before: Sample, now: Sample): Figures {
  const seconds = (now.atMs - before.atMs) / 1000;
  const both = [...now.counts].flatMap(([name, to]) => {
    const from = before.counts.get(name);
    return from === undefined ? [] : [{ from, to }];
  });
  // A process that began anew counts from 0.
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
    receiveToSendMs:
      p50 === undefined || p99 === undefined ? undefined : { p50: p50 * 1000, p99: p99 * 1000 },
    silent: now.silent,
  };
}

/**
 * Quantile of a histogram with cumulative buckets, linear within a bucket, as Prometheus'
 * `histogram_quantile` has it; what lies beyond the last bound is told as that bound.
 * @param counts how many were no larger than each bound, +Infinity included
 * @returns undefined for an empty histogram
 */
export function quantile(counts: ReadonlyMap<number, number>, share: number): number | undefined {
  const buckets = [...counts].sort(([one], [other]) => one - other);
  const all = buckets.at(-1)?.[1] ?? 0;
  if (all === 0) return undefined;
  const rank = share * all;
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
