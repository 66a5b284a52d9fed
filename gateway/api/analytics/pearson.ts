/**
 * Pearson's correlation of two series, by the two-pass formula, which loses nothing to large means.
 * @returns null where one of them does not vary
 */
export function pearson(xs: readonly number[], ys: readonly number[]): number | null {
  const n = xs.length;
  const mean = (of: readonly number[]) => of.reduce((sum, value) => sum + value, 0) / n;
  const meanX = mean(xs);
  const meanY = mean(ys);
  let xy = 0;
  let xx = 0;
  let yy = 0;
  for (let at = 0; at < n; at += 1) {
    const x = xs[at]! - meanX;
    const y = ys[at]! - meanY;
    xy += x * y;
    xx += x * x;
    yy += y * y;
  }
  if (xx === 0 || yy === 0) return null;
  return Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
}
