import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatTimestamp, parseTimestamp } from './timestamp.ts';

describe('parseTimestamp', () => {
  test.each([
    ['', 'timestamp_malformed'],
    ['now', 'timestamp_malformed'],
    ['1763600523004', 'timestamp_malformed'],
    ['2026-11-20', 'timestamp_malformed'],
    ['2026-11-20 01:02:03Z', 'timestamp_malformed'],
    ['2026-11-20t01:02:03Z', 'timestamp_malformed'],
    ['2026-11-20T01:02:03,5Z', 'timestamp_malformed'],
    ['2026-11-20T01:02:03.Z', 'timestamp_malformed'],
    ['2026-02-29T01:02:03Z', 'timestamp_malformed'],
    ['2026-13-01T01:02:03Z', 'timestamp_malformed'],
    ['2026-11-20T24:00:00Z', 'timestamp_malformed'],
    ['2026-12-31T23:59:60Z', 'timestamp_malformed'],
    ['2026-11-20T01:02:03Z ', 'timestamp_malformed'],
    ['+002026-11-20T01:02:03Z', 'timestamp_malformed'],
    ['2026-11-20T01:02:03', 'timestamp_no_zone'],
    ['2026-11-20T01:02:03.123456', 'timestamp_no_zone'],
    ['2026-11-20T01:02:03-00:00', 'timestamp_no_zone'],
    ['2026-11-20T01:02:03+09:00', 'timestamp_not_utc'],
    ['2026-11-20T01:02:03z', 'timestamp_not_utc'],
    ['2026-11-20T01:02:03.123456789Z', 'timestamp_too_precise'],
    ['1969-12-31T23:59:59Z', 'timestamp_out_of_range'],
    ['0001-01-01T00:00:00Z', 'timestamp_out_of_range'],
    ['9999-01-01T00:00:00Z', 'timestamp_out_of_range'],
  ])('%s is refused as %s', (text, code) => {
    expect(parseTimestamp(text)).toMatchObject({ ok: false, code });
  });

  test.each([
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01T00:00:00.000001Z', 1],
    ['2026-11-20T01:02:03.5+00:00', Date.UTC(2026, 10, 20, 1, 2, 3, 500) * 1000],
    ['2026-11-20T01:02:03.004567Z', Date.UTC(2026, 10, 20, 1, 2, 3, 4) * 1000 + 567],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29) * 1000],
  ])('%s is %d µs', (text, micros) => {
    expect(parseTimestamp(text)).toEqual({ ok: true, micros });
  });

  test('a formatted timestamp parses to the same microsecond', () => {
    const max = Date.UTC(2254, 11, 31) * 1000;
    fc.assert(
      fc.property(fc.integer({ min: 0, max }), (micros) => {
        const text = formatTimestamp(micros);
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        expect(parseTimestamp(text)).toEqual({ ok: true, micros });
      }),
    );
  });
});
