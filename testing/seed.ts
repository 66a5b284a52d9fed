import { createRandom } from '../generator/demo/random.ts';
import { isLongRun } from './run-length.ts';

/**
 * The seed of tests with random inputs. Every run of the same code has the same inputs, so that a
 * change is refused for what it changes; the long run draws new inputs. TEST_SEED repeats a run
 * that failed.
 */
export const testSeed = Number(
  process.env.TEST_SEED ?? (isLongRun ? Math.floor(Math.random() * 2 ** 31) : 1),
);

/** Uniform numbers in [0, 1), the same ones for the same seed. */
export function seededRandom(seed: number = testSeed): () => number {
  return createRandom(seed).next;
}
