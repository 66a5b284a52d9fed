import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { formatCursor, parsePosition } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { makePill } from '../../../testing/pills.ts';
import { seededRandom, testSeed } from '../../../testing/seed.ts';
import type { Answer } from '../testing/api-platform.ts';
import { type HistoryFixture, openHistoryFixture } from './testing/history-fixture.ts';

// Symbols of all three partitions.
const SYMBOLS = ['7203.T', '0700.HK', 'M&M.NS', '9984.T', 'BHP.AX', 'TEST:H', 'S2.T'];
const SECOND = 1_000_000;
/** A repeat window so small that some identities repeat beyond it. */
const REPEAT_WINDOW = 40;

let fixture: HistoryFixture;
let random: () => number;

beforeAll(async () => {
  process.stderr.write(`[history] TEST_SEED=${testSeed}\n`);
  random = seededRandom();
  fixture = await openHistoryFixture({}, { repeat_window: REPEAT_WINDOW });
  for (let batch = 0; batch < 6; batch += 1) await fixture.write(randomPills(120));
  await fixture.waitUntilStored();
});

afterAll(() => fixture?.close());

/** Live pills, late ones, backfill, fast clocks, repeats in and beyond the window, conflicts. */
function randomPills(count: number) {
  const now = nowMicros();
  const pills = [];
  for (let n = 0; n < count; n += 1) {
    const symbol = SYMBOLS[Math.floor(random() * SYMBOLS.length)]!;
    const kind = random();
    const age = kind < 0.6 ? random() * 2 : kind < 0.75 ? random() * 50 : random() * 3_600;
    const ahead = kind > 0.9 ? random() * 280 : 0;
    const timestamp = Math.round(now - age * SECOND + ahead * SECOND);
    const known = fixture.pills().filter((pill) => pill.symbol === symbol);
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
const epochOf = () => fixture.namespace.settings.epoch;

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

test('the generated log has late pills, backfill and both kinds of repeats', () => {
  const pills = fixture.pills();
  expect(new Set(pills.map(({ partition }) => partition)).size).toBe(3);
  expect(pills.filter(({ late }) => late).length).toBeGreaterThan(10);
  expect(pills.filter(({ backfill }) => backfill).length).toBeGreaterThan(10);
  const { offsets } = parsePosition(fixture.end())!;
  const written = [...offsets.values()].reduce((sum, offset) => sum + offset + 1, 0);
  expect(pills.length).toBeLessThan(written);
});

describe('by position', () => {
  test('the whole log: every pill with effect once, in log order, with its prev', async () => {
    const pages = await fixture.pages({ until: fixture.end(), limit: 100 });
    expect(dataOf(pages)).toEqual(
      fixture
        .pills()
        .filter((pill) => !isTest(pill))
        .map(bodyOf),
    );
    expect(pages.at(-1)!.body.position).toBe(fixture.end());
    expect(pages.length).toBeGreaterThan(3);
  });

  test.each(SYMBOLS)('one symbol: %s, and each prev is the previous cursor', async (symbol) => {
    const pages = await fixture.pages({ symbol, until: fixture.end(), limit: 7 });
    const own = fixture.pills().filter((pill) => pill.symbol === symbol);
    expect(dataOf(pages)).toEqual(own.map(bodyOf));
    for (const { body } of pages) expect(body.data.length).toBeLessThanOrEqual(7);
  });

  test('any range, any page size: exactly after < offset <= until', async () => {
    const { offsets } = parsePosition(fixture.end())!;
    for (let round = 0; round < 30; round += 1) {
      const partition = Math.floor(random() * 3);
      const last = offsets.get(partition)!;
      const after = Math.floor(random() * (last + 1)) - 1;
      const until = after + Math.max(0, Math.ceil(random() * (last - after)));
      const own = SYMBOLS.filter((symbol) =>
        fixture.pills().some((pill) => pill.symbol === symbol && pill.partition === partition),
      );
      const symbol = random() < 0.5 ? undefined : own[Math.floor(random() * own.length)];
      const expected = fixture
        .pills()
        .filter((pill) => pill.partition === partition)
        .filter(({ offset }) => offset > after && offset <= Math.max(0, until))
        .filter((pill) => (symbol === undefined ? !isTest(pill) : pill.symbol === symbol));
      // At most six pages: one pill per page over a long range would take too long.
      const limit = Math.ceil(expected.length / 6) + Math.floor(random() * 60) || 1;
      const range = {
        ...(symbol === undefined ? {} : { symbol }),
        ...(after < 0 ? {} : { after: formatCursor(partition, after) }),
        epoch: epochOf(),
        until: formatCursor(partition, Math.max(0, until)),
        limit,
      };
      const got = cursorsOf(await fixture.pages(range));
      expect(got, JSON.stringify(range)).toEqual(expected.map(cursorOf));
    }
  });

  test('a client can continue from the position of any page', async () => {
    const all = cursorsOf(await fixture.pages({ until: fixture.end(), limit: 5_000 }));
    const [first] = await fixture.pages({ until: fixture.end(), limit: 150 });
    const rest = await fixture.pages({ after: first!.body.position, until: fixture.end() });
    expect([...cursorsOf([first!]), ...cursorsOf(rest)]).toEqual(all);
    const { body } = await fixture.ask({ after: fixture.end() });
    expect(body).toMatchObject({ data: [], next: null, position: fixture.end() });
  });

  test.each(['after', 'until'])('`%s` beyond the end of the log is 409', async (name) => {
    const beyond = `${epochOf()}:0-999999999`;
    const { status, body } = await fixture.ask({ [name]: beyond });
    expect([status, body.code]).toEqual([409, 'position_ahead']);
    // The end that the problem names is a position of the log.
    const { position } = body;
    expect((await fixture.ask({ after: position })).body).toMatchObject({ data: [], position });
  });

  test('one symbol: the position skips other partitions and loses no pill', async () => {
    const symbol = '7203.T';
    const [first] = await fixture.pages({ symbol, until: fixture.end(), limit: 5 });
    const position = parsePosition(first!.body.position)!;
    const { offsets } = parsePosition(fixture.end())!;
    const [own] = fixture.pills().filter((pill) => pill.symbol === symbol);
    for (const [partition, offset] of offsets) {
      if (partition === own!.partition)
        expect(first!.body.data.at(-1).cursor).toBe(
          formatCursor(partition, position.offsets.get(partition)!),
        );
      else expect(position.offsets.get(partition)).toBe(offset);
    }
  });

  test('without an end: the pills stored at the first page, while more arrive', async () => {
    const before = fixture.pills().filter((pill) => !isTest(pill));
    let page = await fixture.ask({ epoch: epochOf(), limit: 200 });
    const got = [page];
    while (page.body.next !== null) {
      await fixture.write(randomPills(10));
      await fixture.waitUntilStored();
      page = await fixture.ask(page.body.next);
      got.push(page);
    }
    expect(cursorsOf(got)).toEqual(before.map(cursorOf));
    const rest = await fixture.pages({ after: page.body.position, until: fixture.end() });
    const after = fixture.pills().filter((pill) => !isTest(pill));
    expect(cursorsOf(rest).length).toBe(after.length - before.length);
    expect(new Set([...cursorsOf(got), ...cursorsOf(rest)])).toEqual(new Set(after.map(cursorOf)));
  });
});

describe('by time', () => {
  const byOrderTime = (pills: readonly EffectivePill[]) =>
    [...pills].sort((a, b) => a.order - b.order || a.offset - b.offset);
  const ofSymbol = (symbol: string) => fixture.pills().filter((pill) => pill.symbol === symbol);

  test.each(SYMBOLS)('%s: by order time, from inclusive, to exclusive', async (symbol) => {
    const own = byOrderTime(ofSymbol(symbol));
    const from = own[Math.floor(own.length / 4)]!.order;
    const to = own[Math.floor((own.length * 3) / 4)]!.order;
    const expected = own.filter(({ order }) => order >= from && order < to);
    const range = { from: formatTimestamp(from), to: formatTimestamp(to) };
    for (const limit of [3, 5_000]) {
      expect(dataOf(await fixture.pages({ symbol, ...range, limit }))).toEqual(
        expected.map(bodyOf),
      );
    }
    expect(expected.length).toBeGreaterThan(5);
  });

  test('an unknown symbol is named, with the one that was probably meant', async () => {
    const range = { from: formatTimestamp(nowMicros() - SECOND) };
    const { status, body } = await fixture.ask({ symbol: '7203', ...range });
    const unknown_symbols = [{ symbol: '7203', did_you_mean: '7203.T' }];
    expect([status, body]).toMatchObject([200, { data: [], unknown_symbols }]);
    expect((await fixture.ask({ symbol: '7203.T', ...range })).body.unknown_symbols).toBe(
      undefined,
    );
  });

  test('many pills with one timestamp: pages split them, none twice, none lost', async () => {
    const timestamp = nowMicros() - 2_000 * SECOND;
    await fixture.write(
      Array.from({ length: 25 }, () => makePill({ symbol: 'SAME.T', timestamp })),
    );
    await fixture.waitUntilStored();
    const at = { from: formatTimestamp(timestamp), to: formatTimestamp(timestamp + 1) };
    const pages = await fixture.pages({ symbol: 'SAME.T', ...at, limit: 4 });
    expect(cursorsOf(pages)).toEqual(ofSymbol('SAME.T').map(cursorOf));
    expect(pages).toHaveLength(7);
  });

  /** By order time, then by symbol, then by offset. */
  const together = (symbols: readonly string[]) =>
    byOrderTime(symbols.flatMap(ofSymbol)).sort(
      (a, b) => a.order - b.order || (a.symbol < b.symbol ? -1 : Number(a.symbol > b.symbol)),
    );

  test('several symbols with one order time: pages split them, none twice, none lost', async () => {
    const symbols = ['A.T', 'B.T', 'C.T', 'D.T'];
    const timestamps = [0, 0, 0, 1, 1, 300].map((s) => nowMicros() - (5_000 - s) * SECOND);
    timestamps[1] = timestamps[2] = timestamps[0]!;
    timestamps[4] = timestamps[3]!;
    const pills = timestamps.flatMap((timestamp) =>
      symbols.map((symbol) => makePill({ symbol, timestamp })),
    );
    await fixture.write([...pills].sort(() => random() - 0.5));
    await fixture.waitUntilStored();
    const expected = together(symbols);
    expect(new Set(expected.map(({ order }) => order)).size).toBe(3);
    expect(new Set(expected.map(({ partition }) => partition)).size).toBeGreaterThan(1);
    const from = formatTimestamp(timestamps[0]!);
    for (const limit of [3, 7]) {
      const range = { symbols: 'D.T,A.T,C.T,B.T', from, limit };
      expect(cursorsOf(await fixture.pages(range))).toEqual(expected.map(cursorOf));
      const newest = cursorsOf(await fixture.pages({ ...range, order: 'desc' }));
      expect(newest).toEqual(expected.map(cursorOf).reverse());
    }
  });

  test('any symbols, range, order and page size: the same pills as one after the other', async () => {
    for (let round = 0; round < 20; round += 1) {
      const symbols = SYMBOLS.filter(() => random() < 0.5);
      if (symbols.length === 0) continue;
      const all = together(symbols);
      const [from, to] = [random(), random()]
        .map((share) => all[Math.floor(share * all.length)]!.order)
        .sort((a, b) => a - b);
      const expected = all.filter(({ order }) => order >= from! && order < to! + 1);
      const order = random() < 0.5 ? 'asc' : 'desc';
      const range = {
        symbols: symbols.join(),
        from: formatTimestamp(from!),
        to: formatTimestamp(to! + 1),
        order,
        limit: Math.ceil(expected.length / 6) + Math.floor(random() * 20),
      };
      const got = dataOf(await fixture.pages(range));
      const inOrder = order === 'asc' ? expected : expected.toReversed();
      expect(got, JSON.stringify(range)).toEqual(inOrder.map(bodyOf));
    }
  });

  test('the newest first needs no `from`; pills that arrive meanwhile are left out', async () => {
    const symbol = '7203.T';
    const before = byOrderTime(ofSymbol(symbol)).reverse();
    let page = await fixture.ask({ symbol, order: 'desc', limit: 15 });
    const got = [page];
    while (page.body.next !== null) {
      const timestamp = nowMicros() - Math.round(random() * 3_600) * SECOND;
      await fixture.write([makePill({ symbol, timestamp }), makePill({ symbol })]);
      await fixture.waitUntilStored();
      page = await fixture.ask(page.body.next);
      got.push(page);
    }
    expect(dataOf(got)).toEqual(before.map(bodyOf));
    expect(page.body.position).toBe(page.body.as_of.position);
  });

  test.each([
    [{ symbols: '7203.T', symbol: '7203.T', from: 'F' }, 'symbols', 'parameters_exclusive'],
    [{ symbols: '7203.T,bad one', from: 'F' }, 'symbols', 'symbol_malformed'],
    [
      { symbols: Array.from({ length: 21 }, (_, n) => `S${n}`).join(), from: 'F' },
      'symbols',
      'too_many',
    ],
    [{ symbols: '7203.T' }, 'from', 'missing'],
    [{ from: 'F' }, 'symbol', 'missing'],
    [{ symbol: '7203.T', order: 'newest' }, 'order', 'not_a_choice'],
    [{ symbols: '7203.T', until: 'U' }, 'until', 'parameters_exclusive'],
    [{ order: 'desc', until: 'U' }, 'until', 'parameters_exclusive'],
  ])('%j is refused', async (query, parameter, code) => {
    const range = {
      ...query,
      ...('from' in query && { from: formatTimestamp(nowMicros() - SECOND) }),
      ...('until' in query && { until: fixture.end() }),
    };
    const { status, body } = await fixture.ask(range);
    expect(status).toBe(400);
    expect(body.errors).toContainEqual(expect.objectContaining({ parameter, code }));
  });

  test('unknown symbols of a list are named', async () => {
    const { body } = await fixture.ask({ symbols: '7203,7203.T', order: 'desc', limit: 1 });
    expect(body.unknown_symbols).toEqual([{ symbol: '7203', did_you_mean: '7203.T' }]);
    expect(body.data).toHaveLength(1);
  });

  test('pills that arrive within the range while pages are read are left out', async () => {
    const symbol = '0700.HK';
    const from = formatTimestamp(nowMicros() - 2 * 3_600 * SECOND);
    const before = byOrderTime(ofSymbol(symbol));
    let page = await fixture.ask({ symbol, from, limit: 30 });
    const { as_of } = page.body;
    const got = [page];
    while (page.body.next !== null) {
      const timestamp = nowMicros() - Math.round(random() * 3_600) * SECOND;
      await fixture.write([makePill({ symbol, timestamp }), makePill({ symbol })]);
      await fixture.waitUntilStored();
      page = await fixture.ask(page.body.next);
      expect(page.body.as_of).toEqual(as_of);
      got.push(page);
    }
    expect(cursorsOf(got)).toEqual(before.map(cursorOf));
    expect(got.map(({ body }) => body.position).at(-1)).toBe(as_of.position);
    const rest = await fixture.pages({ symbol, after: page.body.position, until: fixture.end() });
    expect(new Set([...cursorsOf(got), ...cursorsOf(rest)])).toEqual(
      new Set(ofSymbol(symbol).map(cursorOf)),
    );
  });
});

describe('formats', () => {
  test('CSV by format and by Accept; Link has the next page', async () => {
    const range = { symbol: '7203.T', until: fixture.end(), limit: 5 };
    const json = await fixture.ask(range);
    for (const answer of [
      await fixture.ask({ ...range, format: 'csv' }),
      await fixture.ask(range, { accept: 'text/csv, application/json;q=0.5' }),
    ]) {
      expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
      const [head, ...lines] = answer.text.trimEnd().split('\r\n');
      expect(head).toMatch(/^cursor,prev,id,timestamp,symbol,gross_spread_percent,/);
      expect(lines.map((line) => line.split(',')[0])).toEqual(cursorsOf([json]));
      expect(answer.headers['pill-position']).toBe(json.body.position);
      const [, next] = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link))!;
      const second = await fixture.ask(next!, { accept: 'application/json' });
      expect(second.status).toBe(200);
    }
  });

  test('a cell with a comma and quotes is quoted', async () => {
    const id = 'a,"b"';
    await fixture.write([makePill({ symbol: 'CSV.T', id })]);
    await fixture.waitUntilStored();
    const { text } = await fixture.ask({ symbol: 'CSV.T', until: fixture.end(), format: 'csv' });
    expect(text).toContain(',"a,""b""",');
  });

  test('ETag: 304 while unchanged; a range with an end may be cached', async () => {
    const range = { symbol: '7203.T', until: fixture.end() };
    const first = await fixture.ask(range);
    expect(first.headers['cache-control']).toBe('private, max-age=3600');
    expect(first.headers.vary).toMatch(/Accept, X-API-Key/);
    const etag = String(first.headers.etag);
    expect((await fixture.ask(range, { 'if-none-match': etag })).status).toBe(304);
    const csv = await fixture.ask({ ...range, format: 'csv' }, { 'if-none-match': etag });
    expect(csv.status).toBe(200);
    const from = formatTimestamp(nowMicros() - 7_200 * SECOND);
    const byTime = await fixture.ask({ symbol: '7203.T', from });
    expect(byTime.headers['cache-control']).toBe('private, no-cache');
  });
});
