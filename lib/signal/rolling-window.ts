/**
 * Scale that makes the median absolute deviation of a normal distribution its standard deviation:
 * the 0.75 quantile of it (Iglewicz and Hoaglin 1993, "modified z-score").
 */
const NORMAL_QUARTILE = 0.6745;

/** The last so many values of a series, and what is usual among them. */
export interface RollingWindow {
  readonly length: number;
  /** Takes the next value; the oldest leaves when the window is full. */
  push(value: number): void;
  /** Middle value, the mean of the two middle ones of an even number; NaN of none. */
  median(): number;
  /** Median of the distances from the median; NaN of none. */
  mad(): number;
}

/**
 * Creates an empty window. A push moves at most `size` doubles, a `mad` looks at them once: some
 * 2 µs together with 1,000.
 */
export function createRollingWindow(size: number): RollingWindow {
  const sorted = new Float64Array(size);
  const ring = new Float64Array(size);
  let length = 0;
  let next = 0;

  /** First place whose value is not below. */
  const placeOf = (value: number) => {
    let low = 0;
    let high = length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sorted[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const median = () => {
    if (length === 0) return Number.NaN;
    const upper = sorted[length >>> 1]!;
    return length % 2 === 1 ? upper : (sorted[(length >>> 1) - 1]! + upper) / 2;
  };

  return {
    get length() {
      return length;
    },
    push(value) {
      if (length === size) {
        const gone = placeOf(ring[next]!);
        sorted.copyWithin(gone, gone + 1, length);
        length -= 1;
      }
      const place = placeOf(value);
      sorted.copyWithin(place + 1, place, length);
      sorted[place] = value;
      length += 1;
      ring[next] = value;
      next = (next + 1) % size;
    },
    median,
    mad() {
      const middle = median();
      // The distances rise to both sides of the median: the nearest are taken from either.
      let right = placeOf(middle);
      let left = right - 1;
      let before = Number.NaN;
      let nearest = Number.NaN;
      for (let taken = 0; taken <= length >>> 1; taken += 1) {
        const below = left < 0 ? Number.POSITIVE_INFINITY : middle - sorted[left]!;
        const above = right >= length ? Number.POSITIVE_INFINITY : sorted[right]! - middle;
        before = nearest;
        nearest = Math.min(below, above);
        if (below < above) left -= 1;
        else right += 1;
      }
      if (length === 0) return Number.NaN;
      return length % 2 === 1 ? nearest : (before + nearest) / 2;
    },
  };
}

/**
 * How unusual a value is, in standard deviations as the median and the MAD have them; null where
 * the MAD is 0, since nothing tells then what is usual.
 */
export function robustZ(value: number, median: number, mad: number): number | null {
  return mad > 0 ? (NORMAL_QUARTILE * (value - median)) / mad : null;
}
