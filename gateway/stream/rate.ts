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
