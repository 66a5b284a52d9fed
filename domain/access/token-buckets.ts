import { type TokenBucket, tokensAt, tryTakeToken } from '../../lib/rate/token-bucket.ts';
import type { Allowance } from './account-access.ts';

/**
 * Buckets that are not full. Beyond that, the oldest bucket is evicted and counts as full again.
 */
const BUCKETS_MAX = 100_000;
/** A sweep for full buckets visits all of them, so it runs at most this often. */
const SWEEP_INTERVAL_MS = 1_000;

interface BurstVerdict extends Allowance {
  /** 0 = a token was taken (or only looked at); else refused, with the seconds to wait, ≥ 1. */
  readonly retryAfterS: number;
}

/**
 * Token buckets by name (an account, a network), in this process only; each is full at first. Rates may
 * differ between calls: remaining tokens are capped by the new burst. `nowMs` is a monotonic clock.
 */
export function createTokenBuckets(bucketsMax = BUCKETS_MAX) {
  const buckets = new Map<string, TokenBucket & { fullAtMs: number }>();
  let sweptMs = Number.NEGATIVE_INFINITY;

  function makeRoom(nowMs: number): void {
    if (nowMs - sweptMs >= SWEEP_INTERVAL_MS) {
      sweptMs = nowMs;
      for (const [name, { fullAtMs }] of buckets) if (fullAtMs <= nowMs) buckets.delete(name);
    }
    if (buckets.size < bucketsMax) return;
    const { value: first } = buckets.keys().next();
    if (first !== undefined) buckets.delete(first);
  }

  return {
    take(name: string, perS: number, burst: number, nowMs: number): BurstVerdict {
      let bucket = buckets.get(name);
      if (bucket === undefined) {
        if (buckets.size >= bucketsMax) makeRoom(nowMs);
        // Field by field: V8 keeps a spread object in a form that makes every later call 6 times slower.
        bucket = { tokens: burst, atMs: nowMs, fullAtMs: nowMs };
        buckets.set(name, bucket);
      }
      const taken = tryTakeToken(bucket, { perS, burst }, nowMs);
      bucket.fullAtMs = nowMs + ((burst - bucket.tokens) / perS) * 1_000;
      return verdictOf(bucket.tokens, perS, burst, taken);
    },
    /** The verdict without taking a token. */
    peek(name: string, perS: number, burst: number, nowMs: number): BurstVerdict {
      const bucket = buckets.get(name);
      const tokens = bucket === undefined ? burst : tokensAt(bucket, { perS, burst }, nowMs);
      return verdictOf(tokens, perS, burst, true);
    },
    /** Number of buckets held. */
    get size() {
      return buckets.size;
    },
  };
}

function verdictOf(tokens: number, perS: number, burst: number, taken: boolean): BurstVerdict {
  return {
    limit: burst,
    remaining: Math.floor(tokens),
    windowS: Math.ceil(burst / perS),
    resetS: Math.ceil((burst - tokens) / perS),
    retryAfterS: taken ? 0 : Math.max(1, Math.ceil((1 - tokens) / perS)),
  };
}
