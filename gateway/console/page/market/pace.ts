/** Pills per second are told over so long. */
const RATE_WINDOW_S = 5;
/** Latencies that the median is taken of, and for how long each counts. */
const LATENCIES_MAX = 512;
const LATENCY_MS = 15_000;

/** How many pills come, and how fast. */
export interface Pace {
  /** A new pill. @param latencyMs undefined: nobody can say */
  note(localMs: number, latencyMs: number | undefined): void;
  /** Pills a second over the last five whole ones. */
  perS(localMs: number): number;
  /** ms, of the last 15 s; undefined: nobody can say. */
  medianMs(localMs: number): number | undefined;
}

/** Creates a pace of nothing. */
export function createPace(): Pace {
  /** By second, a ring of one more than is told: the running one does not count. */
  const counts = new Array<number>(RATE_WINDOW_S + 1).fill(0);
  const latencies: { readonly ms: number; readonly atMs: number }[] = [];
  let second = 0;
  let noted = 0;
  const moveTo = (localMs: number) => {
    const now = Math.floor(localMs / 1_000);
    const missed = Math.min(counts.length, Math.max(0, now - second));
    for (let step = 1; step <= missed; step += 1) counts[(second + step) % counts.length] = 0;
    second = now;
  };
  return {
    note(localMs, latencyMs) {
      moveTo(localMs);
      counts[second % counts.length]! += 1;
      if (latencyMs === undefined) return;
      latencies[noted % LATENCIES_MAX] = { ms: latencyMs, atMs: localMs };
      noted += 1;
    },
    perS(localMs) {
      moveTo(localMs);
      const running = counts[second % counts.length]!;
      return (counts.reduce((sum, count) => sum + count, 0) - running) / RATE_WINDOW_S;
    },
    medianMs(localMs) {
      const recent = latencies.filter(({ atMs }) => localMs - atMs <= LATENCY_MS);
      const sorted = recent.map(({ ms }) => ms).sort((a, b) => a - b);
      return sorted[Math.floor(sorted.length / 2)];
    },
  };
}
