import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsePill } from './pill.ts';
import {
  type LogPill,
  type PillContext,
  pillJson,
  publicPill,
  publicPillText,
} from './public-pill.ts';

const offset = fc.oneof(fc.nat(), fc.maxSafeNat());
// From 1970 to 2254, as `parseTimestamp` accepts them.
const micros = fc.integer({ min: 0, max: 8_993_635_199_999_999 });
const number = (min: number, max: number) =>
  fc.oneof(fc.double({ min, max, noNaN: true }), fc.integer({ min, max }), fc.constant(-0));
const letter = fc.constantFrom(...'ABCZ0189^.:/_&=-');

/** Valid fields, with characters that JSON escapes, and with other scripts. */
const PILL: fc.Arbitrary<LogPill> = fc.record(
  {
    id: fc.oneof(
      fc.string({ minLength: 1, maxLength: 128 }),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
    ),
    timestamp: micros,
    symbol: fc.string({ unit: letter, minLength: 1, maxLength: 31 }).map((text) => `A${text}`),
    gross_spread_percent: number(-1e6, 1e6),
    market_state: fc.oneof(fc.string({ maxLength: 32 }), fc.constantFrom('open', '開いた', 'a"b')),
    confidence: number(0, 1e6),
    partition: fc.nat(10_000),
    offset,
    received_at: micros,
    late: fc.boolean(),
    backfill: fc.boolean(),
  },
  {
    requiredKeys: [
      ...(['id', 'timestamp', 'symbol', 'gross_spread_percent', 'market_state'] as const),
      ...(['confidence', 'partition', 'offset', 'received_at', 'backfill'] as const),
    ],
  },
);
const CONTEXT: fc.Arbitrary<PillContext> = fc.record(
  {
    epoch: fc.stringMatching(/^[a-z0-9]{1,16}$/),
    last: fc.option(offset),
    prev: fc.option(offset),
  },
  { requiredKeys: [] },
);

test('the text form is the JSON of the object form, byte for byte', () => {
  fc.assert(
    fc.property(PILL, CONTEXT, (pill, context) => {
      const text = publicPillText(pill, context);
      const object = publicPill(pill, context);
      expect(text).toBe(JSON.stringify(object));
      // JSON has no -0.
      const { gross_spread_percent, confidence } = object;
      expect(JSON.parse(text)).toStrictEqual({
        ...object,
        gross_spread_percent: gross_spread_percent + 0,
        confidence: confidence + 0,
      });
    }),
    { numRuns: 2_000 },
  );
});

test('the form equals the form of the contract', () => {
  const pill: LogPill = {
    ...{ partition: 3, offset: 132, id: 'p-10', symbol: '7203.T', gross_spread_percent: 0.1261 },
    ...{ market_state: 'open', confidence: 88, late: true, backfill: true },
    ...{ timestamp: 1_763_600_523_004_000, received_at: 1_763_600_523_011_000 },
  };
  expect(publicPillText(pill, { epoch: 'k7f3', last: 131, prev: null })).toBe(
    '{"epoch":"k7f3","cursor":"3-132","last_cursor":"3-131","prev":null,"id":"p-10",' +
      '"timestamp":"2025-11-20T01:02:03.004000Z","symbol":"7203.T","gross_spread_percent":0.1261,' +
      '"market_state":"open","confidence":88,"received_at":"2025-11-20T01:02:03.011000Z",' +
      '"late":true,"backfill":true}',
  );
  expect(Object.keys(publicPill({ ...pill, late: false, backfill: false }, {}))).toEqual([
    ...['cursor', 'id', 'timestamp', 'symbol', 'gross_spread_percent', 'market_state'],
    ...['confidence', 'received_at'],
  ]);
});

test('the form for the ingest endpoint is parsed to the same pill', () => {
  const pill = {
    ...{ id: 'a"\\b', timestamp: 1_763_600_523_004_001, symbol: '7203.T' },
    ...{ gross_spread_percent: -0.1, market_state: 'open', confidence: 88 },
  };
  const rules = { confidenceMax: 100, now: pill.timestamp };
  expect(parsePill(JSON.parse(pillJson(pill)), rules)).toEqual({ ok: true, pill });
});
