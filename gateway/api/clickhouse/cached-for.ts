/**
 * Caches one value for a while; concurrent callers share one refresh, and a failure is not cached.
 * lru-cache's `fetch` is unsuitable: its age counts from the answer, and it does not cache
 * `undefined`.
 * @param maxAgeMs counted from when the refresh began
 */
export function cachedFor<T>(maxAgeMs: number, refresh: () => Promise<T>): () => Promise<T> {
  let cached: { readonly value: T; readonly atMs: number } | undefined;
  let pending: Promise<T> | undefined;
  return () => {
    const atMs = performance.now();
    if (cached !== undefined && atMs - cached.atMs < maxAgeMs) return Promise.resolve(cached.value);
    pending ??= refresh()
      .then((value) => {
        cached = { value, atMs };
        return value;
      })
      .finally(() => {
        pending = undefined;
      });
    return pending;
  };
}
