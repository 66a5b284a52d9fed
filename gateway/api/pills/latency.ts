import { build, type Histogram } from 'hdr-histogram-js';
import { LATENCY_WINDOW_MS } from '../limits.ts';

/** Latencies of the last one to two minutes, in two alternating histograms. */
export function createLatencyWindow(now: () => number = () => performance.now()) {
  const fresh = () =>
    build({
      lowestDiscernibleValue: 1,
      highestTrackableValue: 60_000_000,
      numberOfSignificantValueDigits: 3,
    });
  let current: Histogram = fresh();
  let previous: Histogram = fresh();
  let since = now();
  const turn = () => {
    if (now() - since < LATENCY_WINDOW_MS) return;
    const spare = previous;
    previous = now() - since < 2 * LATENCY_WINDOW_MS ? current : fresh();
    spare.reset();
    current = spare;
    since = now();
  };
  return {
    record(micros: number): void {
      turn();
      current.recordValue(Math.min(60_000_000, Math.max(1, Math.round(micros))));
    },
    figures() {
      turn();
      const both = fresh();
      both.add(current);
      both.add(previous);
      const at = (percentile: number) =>
        both.totalCount === 0 ? null : both.getValueAtPercentile(percentile) / 1000;
      return { count: both.totalCount, p50_ms: at(50), p99_ms: at(99) };
    },
  };
}
