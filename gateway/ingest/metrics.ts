import {
  createCounter,
  createGauge,
  createHistogram,
  LATENCY_BUCKETS_S,
} from '../../lib/metrics.ts';

/** How a request or a row ended: `ok`, `replayed`, or the code of its problem. */
type Outcomes = Map<string, number>;

const requests: Outcomes = new Map();
const rows: Outcomes = new Map();

// Counted in a map, and handed to the registry when it is asked: its own counter builds and
// compares a text of labels at each call.
createCounter({
  name: 'pillole_ingest_requests_total',
  help: 'Requests by how they ended.',
  labelNames: ['outcome'] as const,
  collect() {
    this.reset();
    for (const [outcome, count] of requests) this.inc({ outcome }, count);
  },
});
createCounter({
  name: 'pillole_ingest_pills_total',
  help: 'Pills by how they ended, rows of batches included.',
  labelNames: ['outcome'] as const,
  collect() {
    this.reset();
    for (const [outcome, count] of rows) this.inc({ outcome }, count);
  },
});

/** Time from a whole request to its answer, where the log was asked. */
export const answerSeconds = createHistogram({
  name: 'pillole_ingest_answer_seconds',
  help: 'From a whole request to its answer, where the log was asked.',
  buckets: LATENCY_BUCKETS_S,
});

export function countRequest(outcome: string): void {
  requests.set(outcome, (requests.get(outcome) ?? 0) + 1);
}

export function countPills(outcome: string, count = 1): void {
  if (count > 0) rows.set(outcome, (rows.get(outcome) ?? 0) + count);
}

/** Gauges of what is read when somebody asks for it. */
export function observeIngest(read: {
  readonly requestsInFlight: () => number;
  readonly bodyBytes: () => number;
  readonly symbols: () => number;
  readonly identities: () => number;
  readonly skewMicros: () => number;
}): void {
  const gauge = (name: string, help: string, value: () => number) =>
    createGauge({
      name: `pillole_ingest_${name}`,
      help,
      collect() {
        this.set(value());
      },
    });
  gauge('requests_in_flight', 'Requests being read or waiting for the log.', read.requestsInFlight);
  gauge('bodies_bytes', 'Bytes of the bodies of these requests.', read.bodyBytes);
  gauge('symbols', 'Distinct symbols known.', read.symbols);
  gauge('identities', 'Pills remembered by identity.', read.identities);
  gauge(
    'clock_skew_seconds',
    "How far the broker's clock is ahead of ours.",
    () => read.skewMicros() / 1e6,
  );
}
