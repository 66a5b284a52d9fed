import { expect, test } from 'vitest';
import { QueryError } from '../clickhouse/query-error.ts';
import { createPillSearch, type SearchDeps } from './pill-search.ts';
import { createRecentPills } from './recent-pills.ts';
import type { PillStore } from './stored-pills.ts';

const EPOCH = 'e1';

function searchIn(store: Partial<PillStore>) {
  const recent = createRecentPills(10);
  recent.begin(0, 0);
  return createPillSearch({
    cache: { recent, partitionOf: () => 0 } as unknown as SearchDeps['cache'],
    store: { find: async () => [], coveredOffsets: async () => new Map(), ...store } as PillStore,
    view: { reach: async () => 'reached', processed: () => new Map() } as never,
    epoch: EPOCH,
  });
}

test('a search is complete even if the oldest pill is unknown', async () => {
  const fail = () => Promise.reject(new QueryError('heavy'));
  expect(await searchIn({ oldest: fail }).find('7203.T', 'p-1')).toEqual({
    found: [],
    hasMore: false,
    fault: undefined,
    searchedFrom: undefined,
  });
  const { searchedFrom } = await searchIn({ oldest: async () => 5 }).find('7203.T', 'p-1');
  expect(searchedFrom).toBe(5);
  // A failed search is still reported.
  const { fault } = await searchIn({ find: fail }).find('7203.T', 'p-1');
  expect(fault?.code).toBe('search_incomplete');
});
