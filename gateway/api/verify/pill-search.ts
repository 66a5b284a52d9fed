import { formatCursor } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { QueryError } from '../clickhouse/query-error.ts';
import type { LatestView } from '../pills/latest-view.ts';
import type { SubjectPill } from './facts.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { LogCache } from './log-cache.ts';
import type { Reason } from './reasons.ts';
import type { PillStore, StoredPill } from './stored-pills.ts';

/** A pill found by its id. */
export interface FoundPill {
  readonly pill: SubjectPill;
  /** Epoch of its cursor, if it is a former one. */
  readonly epoch?: string;
  /** Repeats with the same and with other content; absent if the pill is too old to know. */
  readonly repeats?: number;
  readonly conflicts?: number;
}

interface SearchResult {
  /** The first pill of each symbol. */
  readonly found: readonly FoundPill[];
  /** There are more than the search returns. */
  readonly hasMore: boolean;
  /** Why a pill that was not found may exist all the same. */
  readonly fault: Reason | undefined;
  /** Receive time of the oldest pill searched; undefined if unknown. */
  readonly searchedFrom: Micros | undefined;
}

export interface SearchDeps {
  readonly cache: LogCache;
  readonly store: PillStore;
  readonly view: Pick<LatestView, 'reach' | 'processed'>;
  readonly epoch: string;
}

const NOTHING = { found: [], hasMore: false, fault: undefined, searchedFrom: undefined };

export type PillSearch = ReturnType<typeof createPillSearch>;

/** Finds pills by id: recent ones in the log cache, older ones in history. Never rejects. */
export function createPillSearch(deps: SearchDeps) {
  const { cache } = deps;
  return {
    async find(symbol: string, id: string): Promise<SearchResult> {
      const cached = await findRecent(deps, symbol, id);
      if (cached !== undefined) return { ...NOTHING, found: [cached] };
      // History holds former epochs too, so it is searched even if the cache has the whole log.
      const result = await findStored(deps, id, symbol, [cache.partitionOf(symbol)]);
      if (result.found.length > 0) return result;
      // The pill may have arrived in the meantime.
      const late = await findRecent(deps, symbol, id);
      return late === undefined ? result : { ...NOTHING, found: [late] };
    },
    async findAll(id: string): Promise<SearchResult> {
      const { listMax } = VERIFY_LIMITS;
      const result = await findStored(deps, id, undefined, cache.recent.starts.keys());
      const bySymbol = new Map(result.found.map((one) => [one.pill.symbol, one]));
      for (const { pill } of cache.recent.findAll(id)) {
        const stored = bySymbol.get(pill.symbol);
        // History has the very first pill; the cache has the repeat counts of that same pill.
        const isOther = stored !== undefined && stored.pill.offset !== pill.offset;
        if (isOther || bySymbol.size > listMax) continue;
        const found = await findRecent(deps, pill.symbol, id);
        if (found !== undefined) bySymbol.set(pill.symbol, found);
      }
      const found = [...bySymbol.values()].sort((a, b) => (a.pill.symbol < b.pill.symbol ? -1 : 1));
      return { ...result, found: found.slice(0, listMax), hasMore: found.length > listMax };
    },
  };
}

/**
 * Finds a cached pill, once the view shows it too: the verdict is about the pill that the view
 * shows.
 */
async function findRecent(
  { cache, view, epoch }: SearchDeps,
  symbol: string,
  id: string,
): Promise<FoundPill | undefined> {
  const recent = cache.recent.find(symbol, id);
  if (recent === undefined) return undefined;
  const { pill, repeats, conflicts } = recent;
  const { partition, offset } = pill;
  if ((view.processed().get(partition) ?? -1) < offset) {
    // If the wait times out, the verdict reports the view's lag instead.
    await view.reach({ epoch, offsets: new Map([[partition, offset]]) });
  }
  return { pill, repeats, conflicts };
}

/**
 * Finds pills in history.
 * @param symbol undefined: all symbols
 * @param partitions the partitions that a missing pill could be in
 */
async function findStored(
  deps: SearchDeps,
  id: string,
  symbol: string | undefined,
  partitions: Iterable<number>,
): Promise<SearchResult> {
  const { store, epoch } = deps;
  const found = ({ epoch: own, ...pill }: StoredPill): FoundPill =>
    own === epoch ? { pill } : { pill, epoch: own };
  const max = symbol === undefined ? VERIFY_LIMITS.listMax + 1 : 1;
  try {
    const first = symbol === undefined ? [] : await store.find(id, symbol, max);
    if (first.length > 0) return { ...NOTHING, found: first.map(found) };
    // A pill is known to be missing only if the coverage was read before the search.
    const covered = await store.coveredOffsets();
    const rows = await store.find(id, symbol, max);
    return {
      found: rows.map(found),
      hasMore: rows.length > VERIFY_LIMITS.listMax,
      fault: uncoveredFault(deps, covered, partitions),
      searchedFrom: rows.length === 0 ? await oldestSearched(deps) : undefined,
    };
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    return { ...NOTHING, fault: incomplete('history does not answer') };
  }
}

/** Reports offsets between the end of history and the start of the cache. */
function uncoveredFault(
  { cache }: SearchDeps,
  covered: ReadonlyMap<number, number>,
  partitions: Iterable<number>,
): Reason | undefined {
  for (const partition of partitions) {
    const start = cache.recent.starts.get(partition) ?? 0;
    const last = covered.get(partition) ?? -1;
    if (last < start - 1) {
      const missing = `${formatCursor(partition, last + 1)} to ${formatCursor(partition, start - 1)}`;
      return incomplete(`${missing} were not searched`);
    }
  }
  return undefined;
}

/** The search is valid without this time, which is unknown if the table does not answer. */
async function oldestSearched({ store, cache }: SearchDeps): Promise<Micros | undefined> {
  try {
    return (await store.oldest()) ?? cache.recent.oldestAt;
  } catch (error) {
    if (error instanceof QueryError) return undefined;
    throw error;
  }
}

function incomplete(detail: string): Reason {
  return { code: 'search_incomplete', detail };
}
