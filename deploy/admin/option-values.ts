import { InvalidArgumentError } from 'commander';

const INTEGER_MAX = 2_147_483_647;

export function positive(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= INTEGER_MAX) return value;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${INTEGER_MAX}.`);
}

const UNITS_S = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** Reads a duration such as `90s`, `15m`, `1h` or `7d`. @returns seconds */
export function duration(text: string): number {
  const [, digits, unit] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
  if (digits !== undefined) return Number(digits) * UNITS_S[unit as keyof typeof UNITS_S];
  throw new InvalidArgumentError('It must be a number and one of s, m, h, d, e.g. 1h.');
}
