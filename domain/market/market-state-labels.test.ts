import { expect, test } from 'vitest';
import type { MarketState } from './calendars/calendar.ts';
import { agreesWithCalendar } from './market-state-labels.ts';

test.each<[string, readonly MarketState[], boolean | null]>([
  ['open', ['open', 'open', 'open'], true],
  ['OPEN', ['open'], true],
  ['Regular Trading', ['open'], true],
  ['open', ['closed', 'closed', 'open'], true], // the exchange's clock may be one second ahead
  ['open', ['closed', 'closed', 'closed'], false],
  ['lunch-break', ['lunch_break'], true],
  ['lunch', ['open'], false],
  ['lunch', ['closed'], false],
  ['closed', ['lunch_break'], true],
  ['closed', ['holiday'], true],
  ['pre-open', ['closed'], true],
  ['pre-open', ['open'], false],
  ['halted', ['open'], false],
  ['halted', ['closed'], false],
  ['closing_auction', ['open'], null],
  ['開市', ['closed'], null],
  ['open', ['unknown'], null],
])('%s in %j: %s', (label, states, agreed) => {
  expect(agreesWithCalendar(label, states)).toBe(agreed);
});
