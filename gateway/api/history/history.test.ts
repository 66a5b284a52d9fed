import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/clock.ts';
import type { EffectivePill } from '../../../lib/order/judge.ts';
import { makePill } from '../../../lib/testing/pills.ts';
import { formatCursor, parsePosition } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { Answer } from '../testing/platform.ts';
import { openWorld, type World } from './testing/world.ts';

// Of all three partitions.
const SYMBOLS = ['7203.T', '0700.HK', 'M&M.NS', '9984.T', 'BHP.AX', 'TEST:H', 'S2.T'];
const SECOND = 1_000_000;
/** So small that identities come again after it. */
const REPEAT_WINDOW = 40;

let world: World;
let random: () => number;

beforeAll(async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
  process.stderr.write(`[history] SEED=${seed}\n`);
  random = randomOf(seed);
  world = await openWorld({}, { repeat_window: REPEAT_WINDOW });
  for (let batch = 0; batch < 6; batch += 1) await world.write(someLog(120));
  await world.stored();
});

afterAll(() => world?.close());

/** Live pills, late ones, backfill, fast clocks, repeats in and beyond the window, conflicts. */
function someLog(count: number) {
  const now = nowMicros();
  const pills = [];
  for (let n = 0; n < count; n += 1) {
    const symbol = SYMBOLS[Math.floor(random() * SYMBOLS.length)]!;
    const kind = random();
    const age = kind < 0.6 ? random() * 2 : kind < 0.75 ? random() * 50 : random() * 3_600;
    const ahead = kind > 0.9 ? random() * 280 : 0;
    const timestamp = Math.round(now - age * SECOND + ahead * SECOND);
    const known = world.pills().filter((pill) => pill.symbol === symbol);
    const again = known[Math.floor(random() * known.length)];
    if (again !== undefined && random() < 0.2) {
      const { id, timestamp: then, gross_spread_percent, market_state, confidence } = again;
      const content = { gross_spread_percent, market_state, confidence };
      pills.push(makePill({ symbol, id, timestamp: then, ...content }));
    } else pills.push(makePill({ symbol, timestamp, confidence: Math.round(random() * 100) }));
  }
  return pills;
}

const dataOf = (pages: readonly Answer[]) => pages.flatMap(({ body }) => body.data);
const cursorsOf = (pages: readonly Answer[]) => dataOf(pages).map(({ cursor }) => cursor);
const cursorOf = ({ partition, offset }: EffectivePill) => formatCursor(partition, offset);
const isTest = ({ symbol }: EffectivePill) => symbol.startsWith('TEST:');
const epochOf = () => world.namespace.settings.epoch;

function bodyOf(pill: EffectivePill) {
  return {
    cursor: cursorOf(pill),
    prev: pill.prev === null ? null : formatCursor(pill.partition, pill.prev),
    id: pill.id,
    timestamp: formatTimestamp(pill.timestamp),
    symbol: pill.symbol,
    gross_spread_percent: pill.gross_spread_percent,
    market_state: pill.market_state,
    confidence: pill.confidence,
    received_at: formatTimestamp(pill.received_at),
    ...(pill.late ? { late: true } : {}),
    ...(pill.backfill ? { backfill: true } : {}),
  };
}

test('the log of this test has what it should: late, backfill, repeats of both kinds', () => {
  const pills = world.pills();
  expect(new Set(pills.map(({ partition }) => partition)).size).toBe(3);
  expect(pills.filter(({ late }) => late).length).toBeGreaterThan(10);
  expect(pills.filter(({ backfill }) => backfill).length).toBeGreaterThan(10);
  const { offsets } = parsePosition(world.end())!;
  const written = [...offsets.values()].reduce((sum, offset) => sum + offset + 1, 0);
  expect(pills.length).toBeLessThan(written);
});

describe('by position', () => {
  test('all of it: every pill with effect once, in the order of the log, with its prev', async () => {
    const pages = await world.pages({ until: world.end(), limit: 100 });
    expect(dataOf(pages)).toEqual(
      world
        .pills()
        .filter((pill) => !isTest(pill))
        .map(bodyOf),
    );
    expect(pages.at(-1)!.body.position).toBe(world.end());
    expect(pages.length).toBeGreaterThan(3);
  });

  test.each(SYMBOLS)('one symbol: %s, and each prev is the cursor before', async (symbol) => {
    const pages = await world.pages({ symbol, until: world.end(), limit: 7 });
    const own = world.pills().filter((pill) => pill.symbol === symbol);
    expect(dataOf(pages)).toEqual(own.map(bodyOf));
    for (const { body } of pages) expect(body.data.length).toBeLessThanOrEqual(7);
  });

  test('any range, any page size: exactly after < place <= until', async () => {
    const { offsets } = parsePosition(world.end())!;
    for (let round = 0; round < 30; round += 1) {
      const partition = Math.floor(random() * 3);
      const last = offsets.get(partition)!;
      const after = Math.floor(random() * (last + 1)) - 1;
      const until = after + Math.max(0, Math.ceil(random() * (last - after)));
      const own = SYMBOLS.filter((symbol) =>
        world.pills().some((pill) => pill.symbol === symbol && pill.partition === partition),
      );
      const symbol = random() < 0.5 ? undefined : own[Math.floor(random() * own.length)];
      const expected = world
        .pills()
        .filter((pill) => pill.partition === partition)
        .filter(({ offset }) => offset > after && offset <= Math.max(0, until))
        .filter((pill) => (symbol === undefined ? !isTest(pill) : pill.symbol === symbol));
      // At most six pages: a page of one pill each over a long range would only take long.
      const limit = Math.ceil(expected.length / 6) + Math.floor(random() * 60) || 1;
      const asked = {
        ...(symbol === undefined ? {} : { symbol }),
        ...(after < 0 ? {} : { after: formatCursor(partition, after) }),
        ...{ epoch: epochOf(), until: formatCursor(partition, Math.max(0, until)), limit },
      };
      const got = cursorsOf(await world.pages(asked));
      expect(got, JSON.stringify(asked)).toEqual(expected.map(cursorOf));
    }
  });

  test('the position of each page is one to go on from', async () => {
    const all = cursorsOf(await world.pages({ until: world.end(), limit: 5_000 }));
    const [first] = await world.pages({ until: world.end(), limit: 150 });
    const rest = await world.pages({ after: first!.body.position, until: world.end() });
    expect([...cursorsOf([first!]), ...cursorsOf(rest)]).toEqual(all);
    const { body } = await world.ask({ after: world.end() });
    expect(body).toMatchObject({ data: [], next: null, position: world.end() });
  });

  test('of one symbol: the position skips what is not of it, and loses nothing of it', async () => {
    const symbol = '7203.T';
    const [first] = await world.pages({ symbol, until: world.end(), limit: 5 });
    const position = parsePosition(first!.body.position)!;
    const { offsets } = parsePosition(world.end())!;
    const [own] = world.pills().filter((pill) => pill.symbol === symbol);
    for (const [partition, offset] of offsets) {
      if (partition === own!.partition)
        expect(first!.body.data.at(-1).cursor).toBe(
          formatCursor(partition, position.offsets.get(partition)!),
        );
      else expect(position.offsets.get(partition)).toBe(offset);
    }
  });

  test('without an end: what is stored at the first page, while more comes', async () => {
    const before = world.pills().filter((pill) => !isTest(pill));
    let page = await world.ask({ epoch: epochOf(), limit: 100 });
    const got = [page];
    while (page.body.next !== null) {
      await world.write(someLog(10));
      await world.stored();
      page = await world.ask(page.body.next);
      got.push(page);
    }
    expect(cursorsOf(got)).toEqual(before.map(cursorOf));
    const rest = await world.pages({ after: page.body.position, until: world.end() });
    const after = world.pills().filter((pill) => !isTest(pill));
    expect(cursorsOf(rest).length).toBe(after.length - before.length);
    expect(new Set([...cursorsOf(got), ...cursorsOf(rest)])).toEqual(new Set(after.map(cursorOf)));
  });
});

describe('by time', () => {
  const byOrderTime = (pills: readonly EffectivePill[]) =>
    [...pills].sort((a, b) => a.order - b.order || a.offset - b.offset);
  const ofSymbol = (symbol: string) => world.pills().filter((pill) => pill.symbol === symbol);

  test.each(SYMBOLS)('%s: in order time, from included, to excluded', async (symbol) => {
    const own = byOrderTime(ofSymbol(symbol));
    const from = own[Math.floor(own.length / 4)]!.order;
    const to = own[Math.floor((own.length * 3) / 4)]!.order;
    const expected = own.filter(({ order }) => order >= from && order < to);
    const range = { from: formatTimestamp(from), to: formatTimestamp(to) };
    for (const limit of [3, 5_000]) {
      expect(dataOf(await world.pages({ symbol, ...range, limit }))).toEqual(expected.map(bodyOf));
    }
    expect(expected.length).toBeGreaterThan(5);
  });

  test('many of one moment: pages part them, none twice, none lost', async () => {
    const timestamp = nowMicros() - 2_000 * SECOND;
    await world.write(Array.from({ length: 25 }, () => makePill({ symbol: 'SAME.T', timestamp })));
    await world.stored();
    const at = { from: formatTimestamp(timestamp), to: formatTimestamp(timestamp + 1) };
    const pages = await world.pages({ symbol: 'SAME.T', ...at, limit: 4 });
    expect(cursorsOf(pages)).toEqual(ofSymbol('SAME.T').map(cursorOf));
    expect(pages).toHaveLength(7);
  });

  test('pills that come while pages are read, into the range too: what the first page knew', async () => {
    const symbol = '0700.HK';
    const from = formatTimestamp(nowMicros() - 2 * 3_600 * SECOND);
    const before = byOrderTime(ofSymbol(symbol));
    let page = await world.ask({ symbol, from, limit: 10 });
    const { as_of } = page.body;
    const got = [page];
    while (page.body.next !== null) {
      const timestamp = nowMicros() - Math.round(random() * 3_600) * SECOND;
      await world.write([makePill({ symbol, timestamp }), makePill({ symbol })]);
      await world.stored();
      page = await world.ask(page.body.next);
      expect(page.body.as_of).toEqual(as_of);
      got.push(page);
    }
    expect(cursorsOf(got)).toEqual(before.map(cursorOf));
    const rest = await world.pages({ symbol, after: as_of.position, until: world.end() });
    expect(new Set([...cursorsOf(got), ...cursorsOf(rest)])).toEqual(
      new Set(ofSymbol(symbol).map(cursorOf)),
    );
  });
});

describe('as it is shown', () => {
  test('CSV by format and by Accept; the next page stands in Link', async () => {
    const asked = { symbol: '7203.T', until: world.end(), limit: 5 };
    const json = await world.ask(asked);
    for (const answer of [
      await world.ask({ ...asked, format: 'csv' }),
      await world.ask(asked, { accept: 'text/csv, application/json;q=0.5' }),
    ]) {
      expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
      const [head, ...lines] = answer.text.trimEnd().split('\r\n');
      expect(head).toMatch(/^cursor,prev,id,timestamp,symbol,gross_spread_percent,/);
      expect(lines.map((line) => line.split(',')[0])).toEqual(cursorsOf([json]));
      expect(answer.headers['pill-position']).toBe(json.body.position);
      const [, next] = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link))!;
      const second = await world.ask(next!, { accept: 'application/json' });
      expect(second.status).toBe(200);
    }
  });

  test('a cell with a comma, quotes and a line of its own is quoted', async () => {
    const id = 'a,"b"';
    await world.write([makePill({ symbol: 'CSV.T', id })]);
    await world.stored();
    const { text } = await world.ask({ symbol: 'CSV.T', until: world.end(), format: 'csv' });
    expect(text).toContain(',"a,""b""",');
  });

  test('ETag: 304 while it is the same; what has an end may be kept', async () => {
    const asked = { symbol: '7203.T', until: world.end() };
    const first = await world.ask(asked);
    expect(first.headers['cache-control']).toBe('private, max-age=3600');
    expect(first.headers.vary).toMatch(/Accept, X-API-Key/);
    const etag = String(first.headers.etag);
    expect((await world.ask(asked, { 'if-none-match': etag })).status).toBe(304);
    const csv = await world.ask({ ...asked, format: 'csv' }, { 'if-none-match': etag });
    expect(csv.status).toBe(200);
    const from = formatTimestamp(nowMicros() - 7_200 * SECOND);
    const byTime = await world.ask({ symbol: '7203.T', from });
    expect(byTime.headers['cache-control']).toBe('private, no-cache');
  });
});

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
