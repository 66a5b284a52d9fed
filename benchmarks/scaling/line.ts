/** A measured size, and what it cost. */
export interface Point {
  readonly size: number;
  readonly cost: number;
}

/**
 * The straight line through points, by least squares.
 * @returns the cost at size 0, and the cost of one more; NaN with fewer than two different sizes
 */
export function lineThrough(points: readonly Point[]): {
  readonly base: number;
  readonly slope: number;
} {
  const mean = (of: (point: Point) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [size, cost] = [mean((point) => point.size), mean((point) => point.cost)];
  const slope =
    mean((point) => (point.size - size) * (point.cost - cost)) /
    mean((point) => (point.size - size) ** 2);
  return { base: cost - slope * size, slope };
}
