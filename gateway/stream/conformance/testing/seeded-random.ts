import { seededRandom } from '../../../../testing/seed.ts';

/** Random choices that a seed reproduces. */
export interface Random {
  /** An integer from 0 to `n` - 1. */
  below(n: number): number;
  chance(share: number): boolean;
  pick<T>(list: readonly T[]): T;
  bytes(length: number): Buffer;
}

export function createRandom(seed: number): Random {
  const next = seededRandom(seed);
  const below = (n: number) => Math.floor(next() * n);
  return {
    below,
    chance: (share) => next() < share,
    pick: (list) => list[below(list.length)]!,
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}

/** A seed for each run, so that one run can be repeated alone. */
export function seedOf(seed: number, run: number): number {
  return Math.imul(seed ^ Math.imul(run + 1, 0x9e3779b1), 0x85ebca6b) >>> 0;
}
