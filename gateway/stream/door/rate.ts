/** A bucket that holds `burst` tokens and gains `perMs` a millisecond. */
export interface Bucket {
  tokens: number;
  atMs: number;
}

/** Takes a token. @returns false when none is left. */
export function take(bucket: Bucket, perMs: number, burst: number, nowMs: number): boolean {
  bucket.tokens = Math.min(burst, bucket.tokens + (nowMs - bucket.atMs) * perMs);
  bucket.atMs = nowMs;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

/** Counts events. */
export interface Rate {
  add(events: number): void;
  /** Events a second over the last whole window; 0 in the first. */
  perS(): number;
}

const RATE_WINDOW_MS = 250;

/** Creates a counter with windows of 250 ms. @param nowMs a monotonic clock, in ms */
export function createRate(nowMs: () => number): Rate {
  let windowStart = nowMs();
  let count = 0;
  let last = 0;
  const roll = () => {
    const now = nowMs();
    const elapsed = now - windowStart;
    if (elapsed < RATE_WINDOW_MS) return;
    last = (count * 1000) / elapsed;
    count = 0;
    windowStart = now;
  };
  return {
    add(events) {
      roll();
      count += events;
    },
    perS() {
      roll();
      return last;
    },
  };
}
