import { expect, test } from 'vitest';
import { ALWAYS_OPEN, type MarketNow, NO_CALENDAR } from '../../../domain/market/quiet/silence.ts';
import type { LatestPill } from '../../../schemas/avro.ts';
import { silentSources } from './alerts.ts';

const NOW = 1.8e15;
const SILENCE_S = 300;

const pillOf = (fields: Partial<LatestPill>, ageS = SILENCE_S + 1) =>
  ({
    symbol: '7203.T',
    source: 'a',
    backfill: false,
    ...fields,
    received_at: NOW - ageS * 1e6,
  }) as LatestPill;

const openSince = (ageS: number): MarketNow => ({
  ...ALWAYS_OPEN,
  sinceMs: NOW / 1000 - ageS * 1000,
});

test.each([
  ['silent in a session', [pillOf({})], openSince(3_600), ['a']],
  ['silent, where the market never closes', [pillOf({})], ALWAYS_OPEN, ['a']],
  ['a source of unknown name', [pillOf({ source: null })], ALWAYS_OPEN, ['']],
  ['not long enough', [pillOf({}, SILENCE_S - 1)], ALWAYS_OPEN, []],
  ['the session is younger than the silence', [pillOf({})], openSince(SILENCE_S - 1), []],
  ['closed', [pillOf({})], { ...ALWAYS_OPEN, state: 'closed' as const }, []],
  ['no calendar', [pillOf({})], NO_CALENDAR, []],
  [
    'another symbol of the source has pills',
    [pillOf({}), pillOf({ symbol: 'X' }, 1)],
    ALWAYS_OPEN,
    [],
  ],
  ['two sources', [pillOf({}), pillOf({ source: 'b' }, 1)], ALWAYS_OPEN, ['a']],
  ['backfill alone', [pillOf({ backfill: true })], ALWAYS_OPEN, []],
  ['a test symbol', [pillOf({ symbol: 'TEST:A' })], ALWAYS_OPEN, []],
  ['not expected any more', [pillOf({}, 8 * 86_400)], ALWAYS_OPEN, []],
])('%s', (_, pills, market, expected) => {
  const found = silentSources(pills, { of: () => market }, NOW, SILENCE_S);
  expect(found.map(({ source }) => source)).toEqual(expected);
});
