import { describe, expect, test } from 'vitest';
import { formatForeign } from '../view/format.ts';
import { boundOf, byReason, bySource, type HourOutcomes, totalOf } from './outcomes.ts';
import { describeSample, symbolIn } from './refused-pills.ts';

const NONE = { accepted: 0, late: 0, backfill: 0, repeated: 0, rejected: 0, refused: 0 };

function hour(fields: Partial<HourOutcomes>): HourOutcomes {
  return { hour: '2026-11-20T01:00:00.000000Z', source: 'desk-1', ...NONE, reasons: [], ...fields };
}

const why = (count: number, fault = 'missing_field', channel: 'http' | 'log' = 'http') => ({
  ...{ channel, code: 'pill_invalid', fault, count },
});

describe('counts', () => {
  test('by source: the sums of its hours, those with most pills first', () => {
    const hours = [
      hour({ accepted: 3, late: 2, backfill: 1, refused: 1 }),
      hour({ source: 'desk-2', repeated: 6, rejected: 1 }),
      hour({ hour: '2026-11-20T00:00:00.000000Z', accepted: 1, repeated: 1 }),
      hour({ source: '', refused: 7 }),
    ];
    expect(bySource(hours)).toEqual([
      { ...NONE, source: '', refused: 7 },
      { ...NONE, source: 'desk-2', repeated: 6, rejected: 1 },
      { ...NONE, source: 'desk-1', accepted: 4, late: 2, backfill: 1, repeated: 1, refused: 1 },
    ]);
    const sum = { accepted: 4, late: 2, backfill: 1, repeated: 7, rejected: 1, refused: 8 };
    expect(totalOf(hours)).toEqual(sum);
    expect([bySource([]), totalOf([])]).toEqual([[], NONE]);
  });

  test('by reason: summed over hours, apart by source, channel, code and fault', () => {
    const hours = [
      hour({ reasons: [why(2), why(1, '')] }),
      hour({ hour: '2026-11-20T00:00:00.000000Z', reasons: [why(3), why(1, '', 'log')] }),
      hour({ source: '__proto__', reasons: [why(9)] }),
    ];
    expect(byReason(hours)).toEqual([
      { source: '__proto__', ...why(9) },
      { source: 'desk-1', ...why(5) },
      { source: 'desk-1', ...why(1, '') },
      { source: 'desk-1', ...why(1, '', 'log') },
    ]);
  });

  test.each([
    [3, 3, ''],
    [0, 0, ''],
    [50, 1_234, 'The newest 50 of 1,234 rows.'],
  ])('%i shown of %i: "%s"', (shown, count, text) => {
    expect(boundOf('newest', shown, count, 'rows')).toBe(text);
  });
});

describe('refused pills', () => {
  test.each([
    [0, 0, 'No pill was refused or rejected.'],
    [0, 1_234, 'None of the 1,234 was kept as a sample.'],
    [50, 1_234, /^A sample: the newest 50 of 1,234\. /],
    [3, 2, 'The newest 3; the counts above follow within seconds.'],
  ])('a sample of %i pills of %i', (shown, count, text) => {
    expect(describeSample(shown, count)).toMatch(text);
  });

  test.each([
    ['a pill', '{"id":"1","symbol":"7203.T"}', '7203.T'],
    ['escapes', '{"symbol":"\\u202eA\\n\\"B"}', '\u202eA\n"B'],
    ['no symbol', '{"id":"1"}', undefined],
    ['not a text', '{"symbol":7203}', undefined],
    ['a symbol deeper than the pill', '{"pill":{"symbol":"A"}}', undefined],
    ['null', 'null', undefined],
    ['no JSON', 'symbol=A', undefined],
    ['nothing', '', undefined],
    ['a cut after it', '{ "symbol" : "7203.T", "id":"xx', '7203.T'],
    ['a cut within it', '{"symbol":"AAAA', 'AAAA'],
    ['a cut within an escape', '{"symbol":"AA\\u00', 'AA\\u00'],
  ])('the symbol of a body: %s', (_what, body, symbol) => {
    expect(symbolIn({ body, channel: 'http' })).toBe(symbol);
    expect(symbolIn({ body, channel: 'log' })).toBeUndefined();
  });

  test.each([
    ['desk-1', 'desk-1'],
    ['7203.T トヨタ', '7203.T トヨタ'],
    ['\u202ecba\u2066', '\u{fffd}cba\u{fffd}'],
    ['a\r\nb\u2028c\u0000', 'a\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}'],
    ['<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
    ['x'.repeat(10_000), `${'x'.repeat(40)}…`],
    [`${'x'.repeat(39)}😀`, `${'x'.repeat(39)}\u{fffd}…`],
  ])('foreign text is one line of what can be seen: %j', (text, shown) => {
    expect(formatForeign(text, 40)).toBe(shown);
  });
});
