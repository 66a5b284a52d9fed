import type { Allowance } from './access.ts';

/** Buckets that are not full. Beyond, the one that was made first is forgotten: full again. */
const BUCKETS_MAX = 100_000;
/** Looking for full buckets goes through all of them: at most so often. */
const SWEEP_INTERVAL_MS = 1_000;

/** What a burst limit says of a call. */
export interface BurstVerdict extends Allowance {
  /** 0 = a call was taken (or only looked at); else refused, seconds until one passes, ≥ 1. */
  readonly retryAfterS: number;
}

/** Burst limits of accounts, in this process alone. */
export interface Bursts {
  /**
   * Takes a call. Limits may differ from call to call: what is left stays, cut to the new burst.
   * @param ratePerS refill, calls a second, > 0
   * @param burst how many the bucket holds, ≥ 1
   * @param nowMs a monotonic clock
   */
  take(accountId: string, ratePerS: number, burst: number, nowMs: number): BurstVerdict;
  /** The same without taking anything. */
  peek(accountId: string, ratePerS: number, burst: number, nowMs: number): BurstVerdict;
  /** Buckets that are held. */
  readonly size: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
  fullAtMs: number;
}

/** Makes an empty table: every account's bucket is full. */
export function createBursts(bucketsMax = BUCKETS_MAX): Bursts {
  const buckets = new Map<string, Bucket>();
  let sweptMs = Number.NEGATIVE_INFINITY;

  function makeRoom(nowMs: number): void {
    if (nowMs - sweptMs >= SWEEP_INTERVAL_MS) {
      sweptMs = nowMs;
      for (const [id, { fullAtMs }] of buckets) if (fullAtMs <= nowMs) buckets.delete(id);
    }
    if (buckets.size < bucketsMax) return;
    const { value: first } = buckets.keys().next();
    if (first !== undefined) buckets.delete(first);
  }

  return {
    take(accountId, ratePerS, burst, nowMs) {
      let bucket = buckets.get(accountId);
      if (bucket === undefined) {
        if (buckets.size >= bucketsMax) makeRoom(nowMs);
        bucket = { tokens: burst, atMs: nowMs, fullAtMs: nowMs };
        buckets.set(accountId, bucket);
      }
      const tokens = tokensAt(bucket, ratePerS, burst, nowMs);
      const taken = tokens >= 1;
      bucket.tokens = taken ? tokens - 1 : tokens;
      bucket.atMs = nowMs;
      bucket.fullAtMs = nowMs + ((burst - bucket.tokens) / ratePerS) * 1_000;
      return verdictOf(bucket.tokens, ratePerS, burst, taken);
    },
    peek(accountId, ratePerS, burst, nowMs) {
      const bucket = buckets.get(accountId);
      const tokens = bucket === undefined ? burst : tokensAt(bucket, ratePerS, burst, nowMs);
      return verdictOf(tokens, ratePerS, burst, true);
    },
    get size() {
      return buckets.size;
    },
  };
}

function tokensAt(bucket: Bucket, ratePerS: number, burst: number, nowMs: number): number {
  return Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1_000) * ratePerS);
}

function verdictOf(tokens: number, ratePerS: number, burst: number, taken: boolean): BurstVerdict {
  return {
    limit: burst,
    remaining: Math.floor(tokens),
    windowS: Math.ceil(burst / ratePerS),
    resetS: Math.ceil((burst - tokens) / ratePerS),
    retryAfterS: taken ? 0 : Math.max(1, Math.ceil((1 - tokens) / ratePerS)),
  };
}
