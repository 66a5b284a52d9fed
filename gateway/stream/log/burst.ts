/** Bounds the pills that are published in one turn of the event loop. */
export type Burst = ReturnType<typeof createBurst>;

/**
 * Creates the bound that all partitions share.
 * @param pillsMax pills of one burst
 * @param distanceMs least distance between the starts of two bursts
 */
export function createBurst({
  pillsMax,
  distanceMs,
}: {
  readonly pillsMax: number;
  readonly distanceMs: number;
}) {
  let left = pillsMax;
  let nextAtMs = 0;
  let waiting: Promise<void> | undefined;

  const begin = () => {
    left = pillsMax;
    nextAtMs = performance.now() + distanceMs;
    waiting = undefined;
  };
  return {
    /** Counts a pill. @returns whether the burst has room for another */
    take(): boolean {
      left -= 1;
      return left > 0;
    },
    /** Resolves in a later turn of the event loop, when the next burst may begin. */
    wait(): Promise<void> {
      waiting ??= new Promise((resolve) => {
        const ms = nextAtMs - performance.now();
        const done = () => {
          begin();
          resolve();
        };
        if (ms > 0) setTimeout(done, ms);
        else setImmediate(done);
      });
      return waiting;
    },
  };
}
