import type { MarketState } from './calendars/calendar.ts';

/** Known labels of `market_state`, by meaning; compared in lower case, separators as `_`. */
const LABELS = {
  open: ['open', 'trading', 'regular', 'regular_trading', 'continuous', 'continuous_trading'],
  lunch: ['lunch', 'lunch_break', 'break', 'midday_break'],
  closed: [
    ...['closed', 'close', 'holiday', 'weekend', 'pre_open', 'pre_market', 'premarket'],
    ...['post_close', 'post_market', 'postmarket', 'after_hours', 'night'],
  ],
  halted: ['halted', 'halt', 'trading_halt', 'suspended'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

type Meaning = keyof typeof LABELS;

const MEANINGS: ReadonlyMap<string, Meaning> = new Map(
  (Object.keys(LABELS) as Meaning[]).flatMap((meaning) =>
    LABELS[meaning].map((label): [string, Meaning] => [label, meaning]),
  ),
);

/** Calendar states in which a label is right. No calendar has halts, so `halted` is never right. */
const RIGHT_IN: Readonly<Record<Meaning, readonly MarketState[]>> = {
  open: ['open'],
  lunch: ['lunch_break'],
  closed: ['closed', 'holiday', 'lunch_break'],
  halted: [],
};

/** Whether verdicts can compare a label with the calendar. */
export function isKnownLabel(label: string): boolean {
  return meaningOf(label) !== undefined;
}

function meaningOf(label: string): Meaning | undefined {
  // Most labels are as in the table; the normal form costs more than the look-up.
  const known = MEANINGS.get(label);
  return known ?? MEANINGS.get(label.toLowerCase().replaceAll(/[^\p{L}\p{Nd}]+/gu, '_'));
}

/**
 * Whether a label agrees with the calendar.
 * @param states at the time of the pill, and just before and after it
 * @returns null if the label is not known, or the calendar does not cover the time
 */
export function agreesWithCalendar(label: string, states: readonly MarketState[]): boolean | null {
  const meaning = meaningOf(label);
  if (meaning === undefined || states.includes('unknown')) return null;
  return states.some((state) => RIGHT_IN[meaning].includes(state));
}
