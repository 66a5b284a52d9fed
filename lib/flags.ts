import { InvalidArgumentError } from 'commander';

/** Reads a whole number within its bounds, for an option of the command line. */
export function whole(min: number, max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
  };
}

/** Reads whole numbers by commas; they come back in rising order. */
export function rising(min: number, max: number) {
  return (text: string): number[] =>
    text
      .split(',')
      .map(whole(min, max))
      .sort((one, other) => one - other);
}
