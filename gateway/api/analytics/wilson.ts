/** 0.975 quantile of the standard normal distribution: 95 % lie within it on both sides. */
const Z = 1.959963984540054;

/**
 * Bounds of a proportion with 95 % confidence, by Wilson's score interval (1927), which stays within
 * 0 and 1 and holds for few trials too.
 */
export function wilson95(hits: number, n: number): [low: number, high: number] {
  const rate = hits / n;
  const middle = rate + (Z * Z) / (2 * n);
  const reach = Z * Math.sqrt((rate * (1 - rate)) / n + (Z * Z) / (4 * n * n));
  const scale = 1 + (Z * Z) / n;
  return [Math.max(0, (middle - reach) / scale), Math.min(1, (middle + reach) / scale)];
}
