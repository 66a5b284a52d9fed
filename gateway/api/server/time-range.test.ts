import { expect, test } from 'vitest';
import { parseTimestamp } from '../../../schemas/timestamp.ts';
import { parseHistoryQuery } from '../history/history-query.ts';
import { parseWindow, windowBody } from './time-range.ts';

const at = (text: string) => {
  const parsed = parseTimestamp(text);
  if (!parsed.ok) throw new Error(text);
  return parsed.micros;
};
const NOW = at('2026-11-20T12:00:00Z');
const LIMIT = { byDefaultS: 3_600, maxS: 86_400 };
const FROM = '2026-11-20T00:00:00Z';

test.each<[string, { from?: string; to?: string }, string, string]>([
  ['nothing: the default up to now', {}, '2026-11-20T11:00:00Z', '2026-11-20T12:00:00Z'],
  ['from alone: up to now', { from: FROM }, FROM, '2026-11-20T12:00:00Z'],
  ['to alone', { to: FROM }, '2026-11-19T23:00:00Z', FROM],
  [
    'just the most',
    { from: '2026-11-19T12:00:00Z' },
    '2026-11-19T12:00:00Z',
    '2026-11-20T12:00:00Z',
  ],
])('%s', (_, query, since, until) => {
  expect(parseWindow(query, LIMIT, NOW)).toEqual({
    ok: true,
    value: { since: at(since), until: at(until) },
  });
});

test.each<[string, { from?: string; to?: string }, string, string]>([
  ['backwards', { from: FROM, to: '2026-11-19T00:00:00Z' }, 'to', 'range_backwards'],
  ['nothing between them', { from: FROM, to: FROM }, 'to', 'range_backwards'],
  ['still to come', { from: '2026-11-21T00:00:00Z' }, 'to', 'range_backwards'],
  ['too long', { from: '2026-11-19T11:59:59Z' }, 'to', 'range_too_large'],
  ['no zone', { from: '2026-11-20T00:00:00' }, 'from', 'timestamp_no_zone'],
])('%s is refused', (_, query, parameter, code) => {
  const parsed = parseWindow(query, LIMIT, NOW);
  expect(parsed).toMatchObject({ ok: false, faults: [{ parameter, code }] });
});

test('the suggested range fits', () => {
  const query = { from: '2026-11-01T00:00:00.000001Z' };
  const parsed = parseWindow(query, LIMIT, NOW);
  const detail = parsed.ok ? '' : parsed.faults[0]!.detail;
  for (const name of ['from', 'to'] as const) {
    const fits = new RegExp(`${name}=(\\S+Z)`).exec(detail)![1]!;
    const again = parseWindow({ ...query, [name]: fits }, LIMIT, NOW);
    expect(again.ok && Object.values(windowBody(again.value))).toContain(fits);
  }
});

test.each([
  ['2026-11-19T00:00:00Z', 'range_backwards'],
  [FROM, 'range_backwards'],
])('history refuses to=%s in the same way', (to, code) => {
  const parsed = parseHistoryQuery(new URLSearchParams({ symbol: '7203.T', from: FROM, to }));
  expect(parsed).toMatchObject({ ok: false, faults: [{ parameter: 'to', code }] });
});
