import { ZxcvbnFactory } from '@zxcvbn-ts/core';
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common';

/**
 * The time of a check grows with the square of the length: at most some 30 ms for this many code
 * units, 200 ms for 128. Longer passwords are judged by their start.
 */
const CHECKED_UNITS_MAX = 24;
/** Of 0 to 4: at least 10^8 guesses, which is a year of one core at the cost of our hashes. */
const SCORE_MIN = 3;

/** Loading the lists of 49,000 passwords and 7,776 words takes 0.2 s, so the first use does. */
let checker: ZxcvbnFactory | undefined;

/**
 * Whether a password is common, or easily derived from common ones, keyboard rows, dates,
 * repetitions or the user's own data.
 */
export function isEasyToGuess(password: string, own: readonly string[]): boolean {
  checker ??= new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs });
  const inputs = [...own, 'pillole'].filter((text) => text.length > 2);
  return checker.check(password.slice(0, CHECKED_UNITS_MAX), inputs).score < SCORE_MIN;
}
