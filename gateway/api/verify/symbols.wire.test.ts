import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { makePill } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openPlatform, type Platform } from '../testing/api-platform.ts';

const NAMES = ['^N225', '0700.HK', '7203.T', 'AAPL', 'USD/JPY'].sort();

let platform: Platform;

beforeAll(async () => {
  platform = await openPlatform({ account: { tier: 'basic', ratePerS: 500, rateBurst: 500 } });
});

afterAll(() => platform?.close());

const list = (query: string) => platform.ask(`/api/symbols?${query}`);

test('no symbols yet: an empty page', async () => {
  expect((await list('')).body).toEqual({ data: [], next: null });
});

test('symbols by name and in pages: venue, first and last pill; no test symbols', async () => {
  const first = makePill({ symbol: '7203.T', timestamp: 1_700_000_000_000_000 }); // backfill
  await platform.write([first, makePill({ symbol: 'TEST:X' })]);
  const last = NAMES.map((symbol) => makePill({ symbol }));
  const acks = await platform.write(last);
  // The first pill of 7203.T may be listed while its last one is still on its way.
  const newest = new Set(acks.map(({ partition, offset }) => formatCursor(partition, offset)));
  const page = await waitFor('all symbols to be listed', async () => {
    const { body } = await list('');
    const rows = body.data as { symbol: string; first_at: string; last: { cursor: string } }[];
    const isWhole = rows.every(
      ({ first_at, last }) => first_at !== null && newest.has(last.cursor),
    );
    return rows.length === NAMES.length && isWhole && body;
  });
  expect(page.next).toBeNull();
  expect(
    page.data.map((one: { symbol: string; venue: string }) => [one.symbol, one.venue]),
  ).toEqual([
    ['0700.HK', 'XHKG'],
    ['7203.T', 'XTKS'],
    ['AAPL', null],
    ['USD/JPY', 'FX'],
    ['^N225', 'XTKS'],
  ]);
  const at = NAMES.indexOf('7203.T');
  expect(page.data[1]).toMatchObject({
    first_at: formatTimestamp(first.timestamp),
    last: {
      cursor: formatCursor(acks[at]!.partition, acks[at]!.offset),
      timestamp: formatTimestamp(last[at]!.timestamp),
    },
  });
  const names: string[] = [];
  let next: string | null = '/api/symbols?limit=2';
  while (next !== null) {
    const { body } = await list(next.split('?')[1]!);
    expect(body.data.length).toBeLessThanOrEqual(2);
    names.push(...body.data.map((one: { symbol: string }) => one.symbol));
    next = body.next;
  }
  expect(names).toEqual(NAMES);
});

test('the symbols of one venue, in pages; those without a venue; a venue without symbols', async () => {
  await platform.write(['6758.T', '9984.T'].map((symbol) => makePill({ symbol })));
  const tokyo = ['6758.T', '7203.T', '9984.T', '^N225'];
  await waitFor('the symbols of Tokyo', async () => {
    return (await list('venue=XTKS')).body.data.length === tokyo.length;
  });
  const names = ({ body }: { body: { data: { symbol: string }[] } }) =>
    body.data.map(({ symbol }) => symbol);
  const first = await list('venue=XTKS&limit=3');
  expect([names(first), first.body.next]).toEqual([
    tokyo.slice(0, 3),
    '/api/symbols?venue=XTKS&limit=3&after=9984.T',
  ]);
  const rest = await list(first.body.next.split('?')[1]);
  expect([names(rest), rest.body.next]).toEqual([['^N225'], null]);
  expect(names(await list('venue=none'))).toEqual(['AAPL']);
  expect((await list('venue=XASX')).body).toEqual({ data: [], next: null });
});

test('the usual cadence, from the second arrival on', async () => {
  // Around now, because a receive time counts only within 5 s of the append. If a busy broker
  // appends later, another symbol gets the pills.
  let symbol = '';
  for (let attempt = 1, isInTime = false; !isInTime; attempt += 1) {
    symbol = `000${attempt}.T`;
    const now = Date.now() * 1000;
    const pills = [-2_000, -1_000, 0, 1_000].map((ms) =>
      makePill({ symbol, received_at: now + ms * 1000 }),
    );
    const acks = await platform.write(pills);
    isInTime = acks.every(({ appendedAt }) => appendedAt - now < 3_000_000);
  }
  await waitFor('the cadence', async () => {
    const { body } = await list('');
    const row = body.data.find((one: { symbol: string }) => one.symbol === symbol);
    return row?.cadence_ms === 1_000 || JSON.stringify(row);
  });
});

test.each([
  'limit=0',
  'limit=501',
  'limit=x',
  'after=',
  'after=bad',
  'page=1',
  'limit=1&limit=2',
  'venue=TSE',
])('?%s is 400', async (query) => {
  const { status, body } = await list(query);
  expect([status, body.code]).toEqual([400, 'parameter_invalid']);
});
