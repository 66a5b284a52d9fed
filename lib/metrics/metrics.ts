import {
  Counter,
  type CounterConfiguration,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  type HistogramConfiguration,
  Registry,
} from 'prom-client';

/**
 * The process's metrics; names are `pillole_<part>_<unit>`, counters end in `_total`. docs/metrics.md
 * lists them and states the convention; a test holds it and the processes equal.
 */
export const metricsRegistry = new Registry();
// The library looks at the delay of the event loop every 10 ms, which was half of the CPU time that an
// idle process took (measured).
collectDefaultMetrics({ register: metricsRegistry, eventLoopMonitoringPrecision: 100 });

/** The metrics with the names of their labels, also while they have no values. */
export async function metricsAsJson() {
  const metrics = await metricsRegistry.getMetricsAsJSON();
  return metrics.map((metric) => {
    const registered = metricsRegistry.getSingleMetric(metric.name);
    const { labelNames = [] } = registered as { readonly labelNames?: readonly string[] };
    return { ...metric, labels: labelNames };
  });
}

type Options<T> = Omit<T, 'registers'>;

export function createCounter<L extends string>(options: Options<CounterConfiguration<L>>) {
  return new Counter<L>({ ...options, registers: [metricsRegistry] });
}

export function createGauge<L extends string>(options: Options<GaugeConfiguration<L>>) {
  return new Gauge<L>({ ...options, registers: [metricsRegistry] });
}

export function createHistogram<L extends string>(options: Options<HistogramConfiguration<L>>) {
  return new Histogram<L>({ ...options, registers: [metricsRegistry] });
}

/** Histogram buckets in seconds for work that must take less than 100 ms. */
export const LATENCY_BUCKETS_S = [
  0.0005, 0.001, 0.002, 0.003, 0.005, 0.008, 0.012, 0.02, 0.03, 0.05, 0.08, 0.1, 0.2, 0.5, 1, 2, 5,
];
