import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../../lib/testing/pills.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { openPlatform, type Platform } from '../testing/platform.ts';

const NAMES = ['^N225', '0700.HK', '7203.T', 'AAPL', 'USD/JPY'].sort();

let platform: Platform;

beforeAll(async () => {
  platform = await openPlatform({ account: { tier: 'basic', ratePerS: 500, rateBurst: 500 } });
});

afterAll(() => platform?.close());

const list = (query: string) => platform.ask(`/api/symbols?${query}`);

test('nothing yet: an empty page', async () => {
  expect((await list('')).body).toEqual({ data: [], next: null });
});

test('what exists, by name and in pages: venue, first and last pill; no test symbols', async () => {
  const first = makePill({ symbol: '7203.T', timestamp: 1_700_000_000_000_000 }); // backfill
  await platform.write([first, makePill({ symbol: 'TEST:X' })]);
  const last = NAMES.map((symbol) => makePill({ symbol }));
  const acks = await platform.write(last);
  const page = await waitFor('all symbols', async () => {
    const { body } = await list('');
    const isWhole = body.data.every((one: { first_at: unknown }) => one.first_at !== null);
    return body.data.length === NAMES.length && isWhole && body;
  });
  expect(page.next).toBeNull();
  expect(
    page.data.map((one: { symbol: string; venue: string }) => [one.symbol, one.venue]),
  ).toEqual([
    ...[
      ['0700.HK', 'XHKG'],
      ['7203.T', 'XTKS'],
      ['AAPL', null],
      ['USD/JPY', 'FX'],
      ['^N225', 'XTKS'],
    ],
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
  let next: string | null = '';
  while (next !== null) {
    const after: string = next === '' ? '' : `&after=${encodeURIComponent(next)}`;
    const { body } = await list(`limit=2${after}`);
    expect(body.data.length).toBeLessThanOrEqual(2);
    names.push(...body.data.map((one: { symbol: string }) => one.symbol));
    next = body.next;
  }
  expect(names).toEqual(NAMES);
});

test('the usual cadence, once there are two arrivals', async () => {
  const now = Date.now() * 1000;
  for (const ms of [4_000, 3_000, 2_000, 1_000]) {
    await platform.write([makePill({ symbol: '0001.T', received_at: now - ms * 1000 })]);
  }
  await waitFor('the cadence', async () => {
    const { body } = await list('limit=1');
    return body.data[0].cadence_ms === 1_000;
  });
});

test.each(['limit=0', 'limit=501', 'limit=x', 'after=', 'after=bad', 'page=1', 'limit=1&limit=2'])(
  '?%s is 400',
  async (query) => {
    const { status, body } = await list(query);
    expect([status, body.code]).toEqual([400, 'parameter_invalid']);
  },
);
