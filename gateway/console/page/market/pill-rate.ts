/** Window over which pills per second are counted. */
const RATE_WINDOW_S = 5;
/** How many latencies the median covers at most, and for how long each counts. */
const LATENCIES_MAX = 512;
const LATENCY_MS = 15_000;

/** Creates a count of pills per second and of their latency. */
export function createPillRate() {
  /** A ring of counts by second, with one more for the current second, which does not count. */
  const counts = new Array<number>(RATE_WINDOW_S + 1).fill(0);
  const latencies: { readonly ms: number; readonly atMs: number }[] = [];
  let second = 0;
  let samples = 0;
  const moveTo = (localMs: number) => {
    const now = Math.floor(localMs / 1_000);
    const missed = Math.min(counts.length, Math.max(0, now - second));
    for (let step = 1; step <= missed; step += 1) counts[(second + step) % counts.length] = 0;
    second = now;
  };
  return {
    /** Counts a pill. @param latencyMs undefined if unknown */
    add(localMs: number, latencyMs: number | undefined): void {
      moveTo(localMs);
      counts[second % counts.length]! += 1;
      if (latencyMs === undefined) return;
      latencies[samples % LATENCIES_MAX] = { ms: latencyMs, atMs: localMs };
      samples += 1;
    },
    /** Pills per second over the last five complete seconds. */
    perS(localMs: number): number {
      moveTo(localMs);
      const running = counts[second % counts.length]!;
      return (counts.reduce((sum, count) => sum + count, 0) - running) / RATE_WINDOW_S;
    },
    /** Median latency of the last 15 s, in ms; undefined if none is known. */
    medianMs(localMs: number): number | undefined {
      const recent = latencies.filter(({ atMs }) => localMs - atMs <= LATENCY_MS);
      const sorted = recent.map(({ ms }) => ms).sort((a, b) => a - b);
      return sorted[Math.floor(sorted.length / 2)];
    },
  };
}

/** Up to this many pills per second, changes are highlighted. */
const CALM_TO_PER_S = 50;
/** Below this many they are highlighted again: a rate near one limit must not switch all the time. */
const CALM_FROM_PER_S = 35;

/** Whether to highlight changes. @param wasCalm whether they were highlighted until now */
export function isCalm(wasCalm: boolean, perS: number): boolean {
  return perS <= (wasCalm ? CALM_TO_PER_S : CALM_FROM_PER_S);
}
