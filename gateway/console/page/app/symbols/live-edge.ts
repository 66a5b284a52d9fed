import type { Bar } from '../../feed/market-reads.ts';

/** Bars that are kept beside those that were read. */
const BARS_MAX = 500;

interface LivePill {
  readonly timestamp: string;
  readonly gross_spread_percent: number;
}

/** The newest bars, made from pills of a socket, until a read of the bars has the same pills. */
export class LiveEdge {
  readonly #stepMs: number;
  readonly #bars = new Map<number, Bar>();

  constructor(stepS: number) {
    this.#stepMs = stepS * 1_000;
  }

  /** @param pill in order: late pills are left to the next read */
  add({ timestamp, gross_spread_percent: spread }: LivePill): void {
    const startMs = Math.floor(Date.parse(timestamp) / this.#stepMs) * this.#stepMs;
    const bar = this.#bars.get(startMs);
    this.#bars.set(startMs, {
      start: new Date(startMs).toISOString(),
      low: Math.min(bar?.low ?? spread, spread),
      high: Math.max(bar?.high ?? spread, spread),
      close: spread,
    });
    if (this.#bars.size > BARS_MAX) this.#bars.delete(this.#bars.keys().next().value!);
  }

  /** Bars that were read, with what has arrived since. @param read oldest first, as the result */
  extend(read: readonly Bar[]): readonly Bar[] {
    const byStart = new Map(read.map((bar) => [Date.parse(bar.start), bar]));
    const firstMs = byStart.keys().next().value ?? Number.NEGATIVE_INFINITY;
    for (const [startMs, live] of this.#bars) {
      if (startMs < firstMs) continue;
      const before = byStart.get(startMs);
      byStart.set(startMs, {
        start: before?.start ?? live.start,
        low: Math.min(before?.low ?? live.low, live.low),
        high: Math.max(before?.high ?? live.high, live.high),
        close: live.close,
      });
    }
    return [...byStart].sort(([a], [b]) => a - b).map(([, bar]) => bar);
  }
}
