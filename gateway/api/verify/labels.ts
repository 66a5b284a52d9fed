import type { MarketState } from '../../../lib/calendar/calendar.ts';

/** Labels of `market_state` that are known, by what they say; compared in lower case with `_`. */
const LABELS = {
  open: ['open', 'trading', 'regular', 'regular_trading', 'continuous', 'continuous_trading'],
  lunch: ['lunch', 'lunch_break', 'break', 'midday_break'],
  closed: [
    ...['closed', 'close', 'holiday', 'weekend', 'pre_open', 'pre_market', 'premarket'],
    ...['post_close', 'post_market', 'postmarket', 'after_hours', 'night'],
  ],
  halted: ['halted', 'halt', 'trading_halt', 'suspended'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

type Kind = keyof typeof LABELS;

const KINDS: ReadonlyMap<string, Kind> = new Map(
  (Object.keys(LABELS) as Kind[]).flatMap((kind) =>
    LABELS[kind].map((label): [string, Kind] => [label, kind]),
  ),
);

/** States in which a label is right. A halt is seen by no calendar, so it never is. */
const RIGHT_IN: Readonly<Record<Kind, readonly MarketState[]>> = {
  open: ['open'],
  lunch: ['lunch_break'],
  closed: ['closed', 'holiday', 'lunch_break'],
  halted: [],
};

/**
 * Whether a label agrees with the calendar.
 * @param states at the time of the pill, and just before and after it
 * @returns null for a label that is not known, and where the calendar knows nothing
 */
export function agrees(label: string, states: readonly MarketState[]): boolean | null {
  const kind = KINDS.get(label.toLowerCase().replaceAll(/[^\p{L}\p{Nd}]+/gu, '_'));
  if (kind === undefined || states.includes('unknown')) return null;
  return states.some((state) => RIGHT_IN[kind].includes(state));
}
