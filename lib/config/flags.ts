import { InvalidArgumentError } from 'commander';

/** Parser of a command-line option that is a whole number from `min` to `max`. */
export function whole(min: number, max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
  };
}

/** Parser of a command-line option that is a comma-separated list of whole numbers; sorts them. */
export function rising(min: number, max: number) {
  return (text: string): number[] =>
    text
      .split(',')
      .map(whole(min, max))
      .sort((one, other) => one - other);
}
