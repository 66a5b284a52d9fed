/** Of spreads, the same for all: points stand below each other. */
export const DECIMALS = 4;
const MINUS = '\u2212';

/** `0.1253`, with a real minus. */
export function formatSpread(value: number): string {
  return value.toFixed(DECIMALS).replace('-', MINUS);
}

/** `+0.0012`; nothing where there is nothing to compare with. */
export function formatChange(value: number | undefined): string {
  if (value === undefined) return '–';
  const text = formatSpread(Math.abs(value));
  if (Number(text) === 0) return text;
  return `${value < 0 ? MINUS : '+'}${text}`;
}

export function formatConfidence(value: number): string {
  return value.toFixed(1);
}

/** `now`, `12 s`, `3 min`, `5 h`, `2 d`: never more exact than a glance is. */
export function formatAge(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 1) return 'now';
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** `0.4`, `12`, `1,024`. */
export function formatRate(perS: number): string {
  const digits = perS < 10 ? 1 : 0;
  return perS.toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** `0.8 ms`, `12 ms`. */
export function formatLatency(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
