// Objects in Parquet, read back by DuckDB and pyarrow.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { makePill } from '../../testing/pills.ts';
import { makePython } from '../../testing/python.ts';
import { type DestinationFixture, openDestinationFixture } from './testing/destination-fixture.ts';

let fixture: DestinationFixture;

beforeAll(async () => {
  fixture = await openDestinationFixture();
  await fixture.start();
});
afterAll(() => fixture?.close());

const READ = `
import json, sys, datetime, duckdb, pyarrow.parquet as pq
files = sys.argv[1:]
text = lambda t: t.strftime('%Y-%m-%dT%H:%M:%S.%fZ')
order = "SELECT cursor, id, symbol, timestamp, received_at, gross_spread_percent, market_state, confidence, late, backfill, prev FROM read_parquet(?) ORDER BY partition, \\"offset\\""
con = duckdb.connect()
con.execute("SET TimeZone='UTC'")
rows = con.execute(order, [files]).fetchall()
names = [d[0] for d in con.description]
duck = [{n: text(v) if isinstance(v, datetime.datetime) else v for n, v in zip(names, row)} for row in rows]
arrow = []
groups = []
for file in files:
    groups.append(pq.ParquetFile(file).num_row_groups)
    for row in pq.ParquetFile(file).read().to_pylist():
        arrow.append({n: text(row[n]) if isinstance(row[n], datetime.datetime) else row[n] for n in names})
zone = str(pq.ParquetFile(files[0]).schema_arrow.field('timestamp').type)
print(json.dumps({'duck': duck, 'arrow': arrow, 'groups': groups, 'zone': zone}))
`;

test('DuckDB and pyarrow read the pills as they were sent, with times in microseconds of UTC', async () => {
  const { bucket } = await fixture.add({ settings: { format: 'parquet' } });
  const base = Date.now() * 1_000;
  const pills = ['7203.T', '0700.HK', 'M&M.NS', '^N225'].flatMap((symbol, s) =>
    Array.from({ length: 50 }, (_, n) =>
      makePill({
        symbol,
        timestamp: base + n * 7 + s,
        gross_spread_percent: n % 2 === 0 ? -0.1 * n : 1e-9 * n,
        market_state: n % 3 === 0 ? '開場 ü' : 'open',
        confidence: n + 0.25,
        id: `id-"${s}"-${n}-é`,
      }),
    ),
  );
  const cursors = await fixture.write(pills);
  await fixture.waitForPills(bucket, cursors, 'manifest');
  const made = await makePython(path.join(packageRoot, 'sdk/python/requirements.txt'));
  if ('reason' in made) throw new Error(made.reason);
  const files = fixture
    .manifests(bucket)
    .map(({ object }) => path.join(fixture.s3.root, bucket, object));
  const { stdout } = await promisify(execFile)(made.python, ['-c', READ, ...files], {
    maxBuffer: 64 * 1024 * 1024,
  });
  const { duck, arrow, groups, zone } = JSON.parse(stdout);
  const byCursor = new Map(cursors.map((cursor, n) => [cursor, pills[n]!]));
  const last = new Map<string, string>();
  expect(duck).toHaveLength(pills.length);
  for (const row of duck) {
    const { id, symbol, timestamp, ...pill } = byCursor.get(row.cursor)!;
    expect(row).toMatchObject({
      ...{ id, symbol, timestamp: formatTimestamp(timestamp), late: false, backfill: false },
      gross_spread_percent: pill.gross_spread_percent,
      market_state: pill.market_state,
      confidence: pill.confidence,
      prev: last.get(symbol) ?? null,
    });
    last.set(symbol, row.cursor);
  }
  const sorted = (rows: readonly { cursor: string }[]) =>
    [...rows].sort((a, b) => (a.cursor < b.cursor ? -1 : 1));
  expect(sorted(arrow)).toEqual(sorted(duck));
  expect(new Set(groups)).toEqual(new Set([1]));
  expect(zone).toBe('timestamp[us, tz=UTC]');
}, 600_000);
