import { describe, expect, test } from 'vitest';
import { checkPill, identityOf, type PillRules, parsePill } from './pill.ts';

const now = Date.UTC(2026, 10, 20, 1, 2, 3) * 1000;
const rules: PillRules = { confidenceMax: 100, now };
const good = {
  id: 'p-1',
  timestamp: '2026-11-20T01:02:03.004Z',
  symbol: '7203.T',
  gross_spread_percent: 0.12,
  market_state: 'open',
  confidence: 0.5,
};

const codes = (input: unknown) => {
  const parsed = parsePill(input, rules);
  return parsed.ok ? [] : parsed.faults.map(({ pointer, code }) => `${pointer} ${code}`);
};

describe('parsePill', () => {
  test.each([
    [null, ['# not_an_object']],
    [[], ['# not_an_object']],
    ['text', ['# not_an_object']],
    [
      {},
      ['id', 'timestamp', 'symbol', 'gross_spread_percent', 'market_state', 'confidence'].map(
        (name) => `#/${name} missing_field`,
      ),
    ],
    [{ ...good, extra: 1 }, ['#/extra unknown_field']],
    [{ ...good, 'a/b~c': 1 }, ['#/a~1b~0c unknown_field']],
    [JSON.parse('{"__proto__":1}'), expect.arrayContaining(['#/__proto__ forbidden_key'])],
    [{ ...good, id: 1 }, ['#/id not_a_string']],
    [{ ...good, id: '' }, ['#/id id_malformed']],
    [{ ...good, id: 'x'.repeat(129) }, ['#/id id_malformed']],
    [{ ...good, id: 'a\u0000b' }, ['#/id id_malformed']],
    [{ ...good, id: 'a\u200bb' }, ['#/id id_malformed']],
    [{ ...good, id: '\ud800' }, ['#/id lone_surrogate']],
    [{ ...good, id: 'a\ufffd' }, ['#/id invalid_utf8']],
    [{ ...good, symbol: 'lower.t' }, ['#/symbol symbol_malformed']],
    [{ ...good, symbol: '0700 HK' }, ['#/symbol symbol_malformed']],
    [{ ...good, symbol: '７２０３.T' }, ['#/symbol symbol_malformed']],
    [{ ...good, symbol: 'A'.repeat(33) }, ['#/symbol symbol_malformed']],
    [{ ...good, symbol: 'A\n' }, ['#/symbol symbol_malformed']],
    [{ ...good, symbol: '.A' }, ['#/symbol symbol_malformed']],
    [{ ...good, timestamp: 1763600523004 }, ['#/timestamp not_a_string']],
    [{ ...good, timestamp: '2026-11-20T01:07:03.000001Z' }, ['#/timestamp timestamp_in_future']],
    [{ ...good, gross_spread_percent: '1' }, ['#/gross_spread_percent not_a_number']],
    [
      { ...good, gross_spread_percent: Number.POSITIVE_INFINITY },
      ['#/gross_spread_percent not_finite'],
    ],
    [{ ...good, gross_spread_percent: 1e6 + 1 }, ['#/gross_spread_percent out_of_range']],
    [{ ...good, market_state: '' }, ['#/market_state market_state_malformed']],
    [{ ...good, market_state: 'x'.repeat(33) }, ['#/market_state market_state_malformed']],
    [{ ...good, market_state: 'open;' }, ['#/market_state market_state_malformed']],
    [{ ...good, confidence: 101 }, ['#/confidence out_of_range']],
    [{ ...good, confidence: -0.1 }, ['#/confidence out_of_range']],
    [{ ...good, confidence: '0.5' }, ['#/confidence not_a_number']],
    [
      { ...good, confidence: null, symbol: 'x', id: '' },
      ['#/id id_malformed', '#/symbol symbol_malformed', '#/confidence not_a_number'],
    ],
  ])('%j: %j', (input, expected) => {
    expect(codes(input)).toEqual(expected);
  });

  test.each(['7203.T', '0700.HK', 'M&M.NS', '^N225', 'USD/JPY', 'TEST:X', 'A=F', 'A'.repeat(32)])(
    'symbol %s is accepted',
    (symbol) => {
      expect(codes({ ...good, symbol })).toEqual([]);
    },
  );

  test.each(['昼休み', 'หยุด', 'pre-open (auction) 1/2', 'a_b.c:d+e'])(
    'state %s is carried',
    (market_state) => {
      expect(codes({ ...good, market_state })).toEqual([]);
    },
  );

  test('five minutes ahead is the limit, to the microsecond', () => {
    expect(codes({ ...good, timestamp: '2026-11-20T01:07:03Z' })).toEqual([]);
  });

  test('-0 becomes 0', () => {
    const parsed = parsePill({ ...good, gross_spread_percent: -0, confidence: -0 }, rules);
    expect(parsed.ok && Object.is(parsed.pill.gross_spread_percent, 0)).toBe(true);
    expect(parsed.ok && Object.is(parsed.pill.confidence, 0)).toBe(true);
  });

  test('every consumer accepts the pills that the gateway accepts at its limits', () => {
    const parsed = parsePill(good, rules);
    expect(parsed.ok && checkPill(parsed.pill, rules)).toEqual([]);
  });

  test('different pairs have different identities', () => {
    expect(identityOf({ symbol: 'A', id: 'BC' })).not.toBe(identityOf({ symbol: 'AB', id: 'C' }));
  });
});
