export type Random = ReturnType<typeof createRandom>;

/**
 * A generator fully determined by its seed: mulberry32 (T. Ettinger, public domain) has 32 bits of
 * state, sufficient for a demo.
 */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    /** Uniform in [0, 1). */
    next,
    // 1 - u keeps the logarithm's argument above 0.
    /** Exponentially distributed with a mean. */
    exponential: (mean: number) => -mean * Math.log(1 - next()),
    /** Standard normal, by Box and Muller (1958). */
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  };
}
