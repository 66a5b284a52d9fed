import { expect, test } from 'vitest';
import { readStored, toldAsOf } from './stored.ts';

const NOW = 1_800_000_000_000_000;
type Row = readonly [partition: number, last: number, received: number | null];

test.each<[string, readonly Row[], boolean, string, number | null, number | null]>([
  [
    'the newest of all',
    [
      [1, 7, NOW - 9_000],
      [0, 5, NOW - 2_000],
    ],
    false,
    '0-5,1-7',
    2,
    2,
  ],
  ['all of it is there', [[0, 5, NOW - 2_000]], true, '0-5', 2, 0],
  ['a clock ahead of ours', [[0, 5, NOW + 2_000]], false, '0-5', -2, 0],
  [
    'one without a pill that had effect',
    [
      [0, 5, null],
      [1, 7, NOW],
    ],
    false,
    '0-5,1-7',
    0,
    0,
  ],
  ['none with effect', [[0, 5, null]], false, '0-5', null, null],
  ['nothing', [], true, '', null, 0],
])('%s', async (_, rows, hasAll, position, agoMs, lagMs) => {
  const select = async () =>
    rows.map(([partition, last, received]) => ({ partition, last, received }));
  const stored = await readStored(select as never, 'e1');
  const told = toldAsOf('e1', stored, hasAll, NOW);
  expect([told.position, told.lag_ms]).toEqual([`e1:${position}`, lagMs]);
  expect(told.received_at && NOW / 1_000 - Date.parse(told.received_at)).toBe(agoMs);
});
