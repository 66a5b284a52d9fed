/** Decimals of all spreads, so that decimal points are aligned. */
export const DECIMALS = 4;
const WEEK_MS = 6 * 86_400_000;
const MINUS = '\u2212';

/** `0.1253`, with a true minus sign. */
export function formatSpread(value: number): string {
  return value.toFixed(DECIMALS).replace('-', MINUS);
}

/** `+0.0012`; a dash if there is no previous pill. */
export function formatChange(value: number | undefined): string {
  if (value === undefined) return '–';
  const text = formatSpread(Math.abs(value));
  if (Number(text) === 0) return text;
  return `${value < 0 ? MINUS : '+'}${text}`;
}

export function formatConfidence(value: number): string {
  return value.toFixed(1);
}

/** `now`, `12 s`, `3 min`, `5 h`, `2 d`: exact enough for a glance. */
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
  return (perS < 10 ? TENTHS : WHOLE).format(perS);
}

const TENTHS = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** `0.8 ms`, `12 ms`. */
export function formatLatency(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** `14:03:07` or `14:03` today, `Tue 09:00` within a week, else `12 Dec`; in this machine's time zone. */
export function formatTime(ms: number): string {
  const at = new Date(ms);
  const now = new Date();
  if (at.toDateString() === now.toDateString()) {
    return (at.getSeconds() === 0 ? MINUTES : SECONDS).format(at);
  }
  if (Math.abs(ms - now.getTime()) < WEEK_MS) return WEEKDAY.format(at).replace(',', '');
  return DAY.format(at);
}

/** Made once: a format costs a hundred times as much to make as to use. */
const timeFormat = (form: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('en-GB', form);
const CLOCK = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const MINUTES = timeFormat(CLOCK);
const SECONDS = timeFormat({ ...CLOCK, second: '2-digit' });
const WEEKDAY = timeFormat({ weekday: 'short', ...CLOCK });
const DAY = timeFormat({ day: 'numeric', month: 'short' });

/** Controls, formats such as a change of direction, and breaks of lines. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Text of others in one line: what cannot be seen is U+FFFD, and a long text ends with `…`. */
export function formatForeign(text: string, charsMax: number): string {
  const isLong = text.length > charsMax;
  // Cut first: the text may be long. Half a character at the cut becomes U+FFFD too.
  const shown = text.slice(0, charsMax).replace(UNSEEN, '\u{fffd}');
  return isLong ? `${shown}…` : shown;
}
