import { expect, test } from 'vitest';
import { asOfBody, readTableCoverage } from './table-coverage.ts';

const NOW = 1_800_000_000_000_000;
type Row = readonly [partition: number, last: number, received: number | null];

test.each<[string, readonly Row[], boolean, string, number | null, number | null]>([
  [
    'the newest pill of all partitions',
    [
      [1, 7, NOW - 9_000],
      [0, 5, NOW - 2_000],
    ],
    false,
    '0-5,1-7',
    2,
    2,
  ],
  ['the whole log is in the table', [[0, 5, NOW - 2_000]], true, '0-5', 2, 0],
  ['a clock ahead of ours', [[0, 5, NOW + 2_000]], false, '0-5', -2, 0],
  [
    'one partition without a pill with effect',
    [
      [0, 5, null],
      [1, 7, NOW],
    ],
    false,
    '0-5,1-7',
    0,
    0,
  ],
  ['no pill with effect', [[0, 5, null]], false, '0-5', null, null],
  ['an empty table', [], true, '', null, 0],
])('%s', async (_, rows, isWholeLog, position, ageMs, lagMs) => {
  const select = async () =>
    rows.map(([partition, last, received]) => ({ partition, last, received }));
  const coverage = await readTableCoverage(select as never, 'e1');
  const asOf = asOfBody('e1', coverage, isWholeLog, NOW);
  expect([asOf.position, asOf.lag_ms]).toEqual([`e1:${position}`, lagMs]);
  expect(asOf.received_at && NOW / 1_000 - Date.parse(asOf.received_at)).toBe(ageMs);
});
