// Arrow, Parquet and receipts of history and bars, against the pages of JSON.
import { tableFromIPC } from 'apache-arrow';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { parseCursor } from '../../../schemas/position.ts';
import { addToReceipt, EMPTY_RECEIPT, receiptOf } from '../../../schemas/receipt.ts';
import { formatTimestamp, parseTimestamp } from '../../../schemas/timestamp.ts';
import { createTestAccount } from '../../../testing/accounts.ts';
import { makePill } from '../../../testing/pills.ts';
import { MEDIA_TYPES } from '../server/media-type.ts';
import { type HistoryFixture, openHistoryFixture } from './testing/history-fixture.ts';

// Symbols of all three partitions; several values are hard to write in decimal.
const SYMBOLS = ['7203.T', '0700.HK', 'M&M.NS', 'BHP.AX'];
const SPREADS = [0.1 + 0.2, 1e-7, -1e6, 5e-324, 123456.789012345, 0, 1e6, 1 / 3];

let fixture: HistoryFixture;
let from: string;

beforeAll(async () => {
  fixture = await openHistoryFixture();
  const start = nowMicros() - 40_000_000;
  from = formatTimestamp(start);
  const pills = Array.from({ length: 90 }, (_, n) =>
    makePill({
      symbol: SYMBOLS[n % SYMBOLS.length]!,
      timestamp: start + n * 300_001,
      gross_spread_percent: SPREADS[n % SPREADS.length]!,
      confidence: (n * 100) / 90,
      market_state: n % 3 === 0 ? '開場中' : 'open',
      id: `π "${n}", x`,
    }),
  );
  await fixture.write(pills);
  await fixture.write(pills.slice(0, 7)); // repeats, which no answer shows
  await fixture.waitUntilStored();
});
afterAll(() => fixture?.close());

async function get(path: string, accept: string) {
  const headers = { accept, 'x-api-key': fixture.account.key };
  const { statusCode, headers: got, body } = await request(`${fixture.url}${path}`, { headers });
  return { status: statusCode, headers: got, bytes: new Uint8Array(await body.arrayBuffer()) };
}

type Row = Record<string, unknown>;
const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);

/** Arrow rows with times in µs. */
function arrowRows(bytes: Uint8Array): Row[] {
  const table = tableFromIPC(bytes);
  return Array.from({ length: table.numRows }, (_, n) =>
    Object.fromEntries(
      table.schema.fields.map(({ name, type }) => {
        const value = table.getChild(name)!.get(n);
        // apache-arrow gives times in ms, with a fraction.
        return [
          name,
          String(type).startsWith('Timestamp') && value !== null
            ? Math.round(value * 1000)
            : plain(value),
        ];
      }),
    ),
  );
}

async function parquetRows(bytes: Uint8Array): Promise<Row[]> {
  const file = bytes.slice().buffer;
  const parsers = { timestampFromMicroseconds: (micros: bigint) => Number(micros) };
  const rows = await parquetReadObjects({ file, compressors, parsers: parsers as never });
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])),
  );
}

const micros = (text: string) => {
  const parsed = parseTimestamp(text);
  if (!parsed.ok) throw new Error(text);
  return parsed.micros;
};

/** A pill of JSON as a row of Arrow and Parquet. */
function typedRow({ late = false, backfill = false, epoch, ...pill }: Row): Row {
  return {
    ...pill,
    timestamp: micros(pill.timestamp as string),
    received_at: micros(pill.received_at as string),
    ...{ late, backfill, epoch: epoch ?? fixture.namespace.settings.epoch },
  };
}

/** The receipt that these rows must have. */
function computed(rows: readonly Row[], complete: boolean) {
  const pills = rows.map((row) => ({ ...row, ...parseCursor(row.cursor as string) }) as never);
  return {
    ...receiptOf(addToReceipt(EMPTY_RECEIPT, pills), fixture.namespace.settings.epoch),
    complete,
  };
}

const QUERIES = () => [
  `/api/pills?until=${fixture.end()}&limit=40`,
  `/api/pills?symbol=7203.T&until=${fixture.end()}&limit=7`,
  `/api/pills?symbols=${encodeURIComponent(SYMBOLS.join(','))}&from=${from}&limit=33`,
  `/api/pills?symbols=${encodeURIComponent(SYMBOLS.join(','))}&order=desc&limit=50`,
  '/api/pills?symbol=NONE.T&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z',
];

test('pages of history are the same pills in all formats, with the same receipt, cursors and position', async () => {
  for (const query of QUERIES()) {
    const pages = await fixture.pages(query);
    const all: Row[] = [];
    let path: string | undefined = query;
    for (const { body, headers } of pages) {
      const expected = body.data.map(typedRow);
      all.push(...expected);
      expect(body.receipt).toEqual(computed(all, body.next === null));
      const arrow = await get(path!, MEDIA_TYPES.arrow);
      const parquet = await get(path!, MEDIA_TYPES.parquet);
      expect(arrowRows(arrow.bytes)).toEqual(expected);
      expect(await parquetRows(parquet.bytes)).toEqual(expected);
      for (const { status, headers: own } of [arrow, parquet]) {
        expect(status).toBe(200);
        expect(own.vary).toContain('Accept');
        expect(own['pill-position']).toBe(headers['pill-position']);
        expect(own['pill-receipt']).toBe(headers['pill-receipt']);
        // By time, the token also holds what else the first page knew, such as the lag.
        expect(own.link === undefined).toBe(headers.link === undefined);
        // A body that ends early is shorter than announced.
        expect(own['content-length']).toBeDefined();
      }
      path = body.next ?? undefined;
    }
    if (!query.includes('NONE')) expect(all.length).toBeGreaterThan(20);
  }
});

test('columns have real types', async () => {
  const [query] = QUERIES();
  const { schema } = tableFromIPC((await get(query!, MEDIA_TYPES.arrow)).bytes);
  expect(schema.fields.map(({ name, type }) => [name, String(type)])).toEqual([
    ['cursor', 'Utf8'],
    ['prev', 'Utf8'],
    ['id', 'Utf8'],
    ['timestamp', 'Timestamp<MICROSECOND, UTC>'],
    ['symbol', 'Dictionary<Int32, Utf8>'],
    ['gross_spread_percent', 'Float64'],
    ['market_state', 'Dictionary<Int32, Utf8>'],
    ['confidence', 'Float64'],
    ['received_at', 'Timestamp<MICROSECOND, UTC>'],
    ['late', 'Bool'],
    ['backfill', 'Bool'],
    ['epoch', 'Dictionary<Int32, Utf8>'],
  ]);
  const { row_groups } = parquetMetadata(
    (await get(query!, MEDIA_TYPES.parquet)).bytes.buffer as ArrayBuffer,
  );
  expect(row_groups[0]!.columns.map(({ meta_data }) => meta_data!.codec)).toEqual(
    Array(12).fill('ZSTD'),
  );
});

describe('negotiation', () => {
  test.each([
    [`${MEDIA_TYPES.arrow};q=0.1, application/json;q=0.5`, 'application/json; charset=utf-8'],
    [`text/csv;q=0.4, ${MEDIA_TYPES.parquet};q=0.5`, MEDIA_TYPES.parquet],
    ['*/*', 'application/json; charset=utf-8'],
  ])('Accept: %s gets %s', async (accept, type) => {
    const { headers } = await get(QUERIES()[0]!, accept);
    expect(headers['content-type']).toBe(type);
  });

  test.each([
    '/api/pills?epoch=EPOCH',
    '/api/analytics/bars?symbol=7203.T',
    '/api/analytics/summary?symbol=7203.T',
  ])('%s: another format is refused with the list of those that exist', async (path) => {
    const at = path.replace('EPOCH', fixture.namespace.settings.epoch);
    const { status, headers, bytes } = await get(at, 'application/xml');
    const body = JSON.parse(Buffer.from(bytes).toString());
    expect([status, body.code, headers.vary]).toEqual([
      406,
      'not_acceptable',
      expect.stringContaining('Accept'),
    ]);
    const both = ['application/json', 'text/csv'];
    const binary = [MEDIA_TYPES.arrow, MEDIA_TYPES.parquet];
    expect(body.available).toEqual(path.includes('summary') ? both : [...both, ...binary]);
  });

  test('a page counts as one call, whatever its format', async () => {
    const { key } = await createTestAccount(fixture.db, fixture.namespace, {
      tier: 'pro',
      callsPerDay: 2,
    });
    const ask = (accept: string) => fixture.ask(QUERIES()[0]!, { accept }, key);
    const answers = [
      await ask(MEDIA_TYPES.arrow),
      await ask(MEDIA_TYPES.parquet),
      await ask('*/*'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  });

  test('a token of a page that a client changed is refused, so no receipt can be forged', async () => {
    const { body } = await fixture.ask(QUERIES()[0]!);
    const next = new URL(body.next, fixture.url);
    const [payload, mac] = next.searchParams.get('page')!.split('.');
    const state = JSON.parse(Buffer.from(payload!, 'base64url').toString());
    state.receipt.count += 1;
    const forged = Buffer.from(JSON.stringify(state)).toString('base64url');
    next.searchParams.set('page', `${forged}.${mac}`);
    const answer = await fixture.ask(`${next.pathname}${next.search}`);
    expect(answer.body.errors[0].code).toBe('page_unknown');
  });
});

test.each([
  'symbols=7203.T,0700.HK&interval=1s&limit=9',
  'symbol=7203.T&interval=1m&order=asc',
  'symbol=7203.T&interval=1d&day=session',
])('bars?%s: the figures of JSON in Arrow and Parquet', async (query) => {
  const path = `/api/analytics/bars?${query}`;
  const { body } = await fixture.ask(path);
  const arrow = await get(path, MEDIA_TYPES.arrow);
  const rows = await parquetRows((await get(path, MEDIA_TYPES.parquet)).bytes);
  expect(arrowRows(arrow.bytes)).toEqual(rows);
  const expected = body.data.map((bar: Row) => ({
    ...bar,
    start: micros(bar.start as string),
    ...(bar.end === undefined ? {} : { end: micros(bar.end as string) }),
  }));
  // Whether a bar is final may change between two requests.
  expect(rows.map(({ final, ...bar }) => bar)).toEqual(
    expected.map(({ final, ...bar }: Row) => bar),
  );
  const link = body.next === null ? undefined : `<${body.next}>; rel="next"`;
  expect(arrow.headers.link === undefined).toBe(link === undefined);
  expect(arrow.headers['pill-position']).toBe(body.as_of.position);
});
