import {
  createCounter,
  createGauge,
  createHistogram,
  LATENCY_BUCKETS_S,
} from '../../lib/metrics/metrics.ts';

/**
 * A counter by outcome: `ok`, `replayed`, or the code of a problem. It counts in a map, which is
 * copied when metrics are collected, because the library's counter builds a string of labels at
 * each call.
 */
function outcomeCounter(name: string, help: string): (outcome: string, count?: number) => void {
  const counts = new Map<string, number>();
  createCounter({
    name,
    help,
    labelNames: ['outcome'] as const,
    collect() {
      this.reset();
      for (const [outcome, count] of counts) this.inc({ outcome }, count);
    },
  });
  return (outcome, count = 1) => {
    if (count > 0) counts.set(outcome, (counts.get(outcome) ?? 0) + count);
  };
}

export const countRequest = outcomeCounter(
  'pillole_ingest_requests_total',
  'Requests by how they ended.',
);
export const countPills = outcomeCounter(
  'pillole_ingest_pills_total',
  'Pills by how they ended, rows of batches included.',
);

/** Time from a complete request to its answer, where the log was involved. */
export const answerSeconds = createHistogram({
  name: 'pillole_ingest_answer_seconds',
  help: 'From a complete request to its answer, where the log was involved.',
  buckets: LATENCY_BUCKETS_S,
});

/** Gauges that are read at collection. */
const GAUGES = {
  requests_in_flight: 'Requests being read or waiting for the log.',
  bodies_bytes: 'Bytes of the bodies of these requests.',
  symbols: 'Distinct symbols known.',
  identities: 'Pills remembered by identity.',
  clock_skew_seconds: "How far the broker's clock is ahead of this process's.",
} as const;

/** Registers the gauges, each with the function that reads its value. */
export function observeIngest(read: Readonly<Record<keyof typeof GAUGES, () => number>>): void {
  for (const name of Object.keys(GAUGES) as (keyof typeof GAUGES)[]) {
    createGauge({
      name: `pillole_ingest_${name}`,
      help: GAUGES[name],
      collect() {
        this.set(read[name]());
      },
    });
  }
}
