import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClickHouse, openClickHouse } from '../../../lib/clickhouse.ts';
import { silentLog } from '../../../lib/log.ts';
import { testEngines } from '../../../lib/testing/namespace.ts';
import { openSelect, type StatementBounds } from './select.ts';

const BOUNDS: StatementBounds = {
  ...{ statementS: 3, statementMs: 30_000 },
  ...{ statementRowsMax: 1e12, statementBytesMax: 500_000_000 },
};
const LONG = 'SELECT count() FROM numbers_mt(100000000000) WHERE cityHash64(number) = 7';
let clickhouse: ClickHouse;

beforeAll(() => {
  clickhouse = openClickHouse({ url: testEngines().clickhouseUrl, database: 'default' });
});
afterAll(() => clickhouse?.close());

const selectWith = (bounds: Partial<StatementBounds>) =>
  openSelect(clickhouse, silentLog, { name: 'test', bounds: { ...BOUNDS, ...bounds } });

test.each<[string, Partial<StatementBounds>, string, string]>([
  ['too long', { statementS: 0.2 }, LONG, 'heavy'],
  ['too many rows', { statementRowsMax: 10 }, 'SELECT sum(number) FROM numbers(100)', 'heavy'],
  ['no such table', {}, 'SELECT 1 FROM nowhere', 'away'],
  ['given up before ClickHouse does', { statementMs: 100 }, LONG, 'away'],
])('a statement over its bounds is told apart from one without an answer: %s', async (...row) => {
  const [, bounds, statement, why] = row;
  await expect(selectWith(bounds)(statement)).rejects.toMatchObject({ name: 'NoAnswer', why });
});

test('64 bits are numbers; nothing is asked for whom nobody waits any more', async () => {
  const select = selectWith({});
  expect(await select('SELECT {n:UInt64} AS n', { n: 7 })).toEqual([{ n: 7 }]);
  await expect(select('SELECT 1', {}, AbortSignal.abort())).rejects.toMatchObject({ why: 'away' });
});
