import { expect, test } from 'vitest';
import { ALWAYS_OPEN, judgeSilence, type MarketNow, NO_CALENDAR } from './silence.ts';

const OPENED = 1_000_000;
const open: MarketNow = { state: 'open', sinceMs: OPENED, opensMs: undefined };
const lunch: MarketNow = { state: 'lunch_break', sinceMs: OPENED, opensMs: OPENED + 3_600_000 };
const at = (ms: number) => OPENED + ms;
const judge = (
  market: MarketNow,
  lastAtMs: number | undefined,
  nowMs: number,
  hearingSinceMs?: number,
) =>
  judgeSilence({ market, lastAtMs, nowMs, receivingSinceMs: hearingSinceMs, lateAfterMs: 5_000 });

test.each<[string, ReturnType<typeof judge>, object]>([
  [
    'no pill ever',
    judge(open, undefined, at(0)),
    { quiet: { reason: 'never_seen', sinceMs: undefined, untilMs: undefined } },
  ],
  [
    'a ms before it is late',
    judge(open, at(100), at(5_099)),
    { quiet: undefined, askAtMs: at(5_100) },
  ],
  [
    'late from its last pill on',
    judge(open, at(100), at(5_100)),
    { quiet: { reason: 'generator_late', sinceMs: at(100), untilMs: undefined } },
  ],
  [
    'the morning before counts from the opening',
    judge(open, at(-60_000), at(4_999)),
    { quiet: undefined, askAtMs: at(5_000) },
  ],
  [
    'silent since the opening',
    judge(open, at(-60_000), at(5_000)),
    { quiet: { reason: 'generator_late', sinceMs: at(0), untilMs: undefined } },
  ],
  [
    'the break has just begun',
    judge(lunch, at(-10), at(4_989)),
    { quiet: undefined, askAtMs: at(4_990) },
  ],
  [
    'the break, since it began and until it ends',
    judge(lunch, at(-10), at(4_990)),
    { quiet: { reason: 'lunch_break', sinceMs: at(0), untilMs: at(3_600_000) } },
  ],
  [
    'a holiday without a known next opening',
    judge({ state: 'holiday', sinceMs: at(0), opensMs: undefined }, at(-10), at(9_000)),
    { quiet: { reason: 'holiday', sinceMs: at(0), untilMs: undefined } },
  ],
  [
    'closed',
    judge({ ...lunch, state: 'closed' }, at(-10), at(9_000)),
    { quiet: { reason: 'market_closed', sinceMs: at(0), untilMs: at(3_600_000) } },
  ],
  [
    'past the calendar',
    judge({ state: 'unknown', sinceMs: at(0), opensMs: undefined }, at(-10), at(9_000)),
    { quiet: { reason: 'calendar_unknown', sinceMs: at(-10), untilMs: undefined } },
  ],
  [
    'no calendar',
    judge(NO_CALENDAR, at(0), at(5_000)),
    { quiet: { reason: 'calendar_unknown', sinceMs: at(0), untilMs: undefined } },
  ],
  [
    'a market that never closes',
    judge(ALWAYS_OPEN, at(0), at(5_000)),
    { quiet: { reason: 'generator_late', sinceMs: at(0), untilMs: undefined } },
  ],
  [
    'a symbol is not late right after an interruption of the reception',
    judge(open, at(100), at(9_000), at(8_000)),
    { quiet: undefined, askAtMs: at(13_000) },
  ],
  [
    'a symbol that is late after an interruption is late since its last pill',
    judge(open, at(100), at(13_000), at(8_000)),
    { quiet: { reason: 'generator_late', sinceMs: at(100), untilMs: undefined } },
  ],
])('%s', (_, judged, expected) => {
  expect(judged).toEqual(expected);
});
