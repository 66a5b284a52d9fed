/** A token bucket as plain data, so that tables of many buckets stay small. */
export interface TokenBucket {
  /** As of `atMs`; below 0 after `takeToken` from an empty bucket. */
  tokens: number;
  atMs: number;
}

/** Refill and capacity; both may differ from call to call. */
export interface BucketRate {
  /** Tokens a second, > 0. */
  readonly perS: number;
  /** How many the bucket holds, ≥ 1. */
  readonly burst: number;
}

/** A bucket that is full at any rate. @param nowMs a monotonic clock */
export function fullBucket(nowMs: number): TokenBucket {
  return { tokens: Number.POSITIVE_INFINITY, atMs: nowMs };
}

/** Tokens that the bucket holds now, cut to the burst; fractions count. */
export function tokensAt(bucket: TokenBucket, { perS, burst }: BucketRate, nowMs: number): number {
  return Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1_000) * perS);
}

/** Milliseconds until a token is available; 0 = now. Takes no token. */
export function waitForTokenMs(bucket: TokenBucket, rate: BucketRate, nowMs: number): number {
  const tokens = tokensAt(bucket, rate, nowMs);
  return tokens >= 1 ? 0 : ((1 - tokens) / rate.perS) * 1_000;
}

/** Takes a token, even if none is left: the debt delays later ones. */
export function takeToken(bucket: TokenBucket, rate: BucketRate, nowMs: number): void {
  bucket.tokens = tokensAt(bucket, rate, nowMs) - 1;
  bucket.atMs = nowMs;
}

/** Takes a token if one is left. @returns whether it was taken */
export function tryTakeToken(bucket: TokenBucket, rate: BucketRate, nowMs: number): boolean {
  bucket.tokens = tokensAt(bucket, rate, nowMs);
  bucket.atMs = nowMs;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}
