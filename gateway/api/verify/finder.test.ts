import { expect, test } from 'vitest';
import { NoAnswer } from '../clickhouse/select.ts';
import { createFinder, type FinderOptions } from './finder.ts';
import { createRecent } from './recent.ts';
import type { Store } from './store.ts';

const EPOCH = 'e1';

function finderOf(store: Partial<Store>) {
  const recent = createRecent(10);
  recent.begin(0, 0);
  return createFinder({
    memory: { recent, partitionOf: () => 0 } as unknown as FinderOptions['memory'],
    store: { find: async () => [], progress: async () => new Map(), ...store } as Store,
    view: { reach: async () => 'reached', processed: () => new Map() } as never,
    epoch: EPOCH,
  });
}

test('a table too large to tell its oldest pill is searched all the same', async () => {
  const away = () => Promise.reject(new NoAnswer('heavy'));
  expect(await finderOf({ oldest: away }).find('7203.T', 'p-1')).toEqual({
    ...{ found: [], hasMore: false, fault: undefined, searchedFrom: undefined },
  });
  const { searchedFrom } = await finderOf({ oldest: async () => 5 }).find('7203.T', 'p-1');
  expect(searchedFrom).toBe(5);
  // What could not be searched is still told.
  const { fault } = await finderOf({ find: away }).find('7203.T', 'p-1');
  expect(fault?.code).toBe('search_incomplete');
});
