import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClickHouse, openClickHouse } from '../../../lib/clickhouse/clickhouse-client.ts';
import { silentLog } from '../../../lib/log/log.ts';
import { testEngine } from '../../../testing/engine-addresses.ts';
import { openSelect, type StatementBounds } from './select.ts';

const BOUNDS: StatementBounds = {
  statementS: 3,
  statementMs: 30_000,
  statementRowsMax: 1e12,
  statementBytesMax: 500_000_000,
};
const LONG = 'SELECT count() FROM numbers_mt(100000000000) WHERE cityHash64(number) = 7';
let clickhouse: ClickHouse;

beforeAll(() => {
  clickhouse = openClickHouse({ url: testEngine('clickhouse'), database: 'default' });
});
afterAll(() => clickhouse?.close());

const selectWith = (bounds: Partial<StatementBounds>) =>
  openSelect(clickhouse, silentLog, { name: 'test', bounds: { ...BOUNDS, ...bounds } });

test.each<[string, Partial<StatementBounds>, string, string]>([
  ['too long', { statementS: 0.2 }, LONG, 'heavy'],
  ['too many rows', { statementRowsMax: 10 }, 'SELECT sum(number) FROM numbers(100)', 'heavy'],
  ['no such table', {}, 'SELECT 1 FROM nowhere', 'unavailable'],
  ['our own timeout comes first', { statementMs: 100 }, LONG, 'unavailable'],
])('an exceeded bound is distinguished from other failures: %s', async (...row) => {
  const [, bounds, statement, kind] = row;
  await expect(selectWith(bounds)(statement)).rejects.toMatchObject({ name: 'QueryError', kind });
});

test('64-bit integers are numbers; an aborted query is not sent', async () => {
  const select = selectWith({});
  expect(await select('SELECT {n:UInt64} AS n', { n: 7 })).toEqual([{ n: 7 }]);
  await expect(select('SELECT 1', {}, AbortSignal.abort())).rejects.toMatchObject({
    kind: 'unavailable',
  });
});
