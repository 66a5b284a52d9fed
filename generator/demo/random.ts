/** A source of randomness that a seed decides wholly. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Standard normal. */
  normal(): number;
  /** Exponentially distributed with a mean. */
  exponential(mean: number): number;
}

/** mulberry32 (T. Ettinger, public domain): 32 bits of state, enough for a demo's looks. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    // 1 - u keeps the logarithm's argument above 0.
    exponential: (mean) => -mean * Math.log(1 - next()),
    // Box and Muller (1958).
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  };
}
