/**
 * Asks once for all who want to know, and believes the answer for a while; what fails is asked anew.
 * @param maxAgeMs since it was asked
 */
export function kept<T>(maxAgeMs: number, ask: () => Promise<T>): () => Promise<T> {
  let known: { readonly value: T; readonly atMs: number } | undefined;
  let asking: Promise<T> | undefined;
  return () => {
    const atMs = performance.now();
    if (known !== undefined && atMs - known.atMs < maxAgeMs) return Promise.resolve(known.value);
    asking ??= ask()
      .then((value) => {
        known = { value, atMs };
        return value;
      })
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
}
