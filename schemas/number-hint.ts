const DECIMAL_COMMA = /^\s*([+-]?\d+),(\d+)\s*$/;
const NOT_FINITE = /^\s*[+-]?(?:nan|inf|infinity)\s*$/i;

/** Why a value is no number, as far as a usual mistake explains it; else an empty text. */
export function numberHint(value: unknown, isQuoted: boolean): string {
  if (value === null) {
    return ' Many programs write null for NaN and Infinity: send a finite number.';
  }
  if (typeof value !== 'string') return '';
  if (NOT_FINITE.test(value)) return ' NaN and Infinity are not numbers here: send a finite one.';
  const [, whole, decimals] = DECIMAL_COMMA.exec(value) ?? [];
  if (whole !== undefined) {
    return ` Write decimals with a point${isQuoted ? ' and without quotes' : ''}: ${whole}.${decimals}.`;
  }
  return isQuoted ? ' Send it without quotes.' : '';
}
