import type { Sample } from './sample.ts';

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

export function figuresBetween(before: Sample, now: Sample): Figures {
  const seconds = (now.atMs - before.atMs) / 1000;
  // A process that began anew counts from 0.
  const perS = (from: number, to: number) => Math.max(0, to - from) / seconds;
  const counts = new Map(
    [...now.receiveToSend].map(([bound, count]) => [
      bound,
      Math.max(0, count - (before.receiveToSend.get(bound) ?? 0)),
    ]),
  );
  const p50 = quantile(counts, 0.5);
  const p99 = quantile(counts, 0.99);
  return {
    receivedPerS: perS(before.received, now.received),
    acknowledgedPerS: perS(before.acknowledged, now.acknowledged),
    deliveriesPerS: perS(before.deliveries, now.deliveries),
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
