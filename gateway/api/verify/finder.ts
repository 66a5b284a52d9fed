import { formatCursor } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import type { LatestView } from '../view.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { LogMemory } from './log-memory.ts';
import type { Reason } from './reasons.ts';
import type { Store, StoredPill } from './store.ts';
import type { WeighedPill } from './verdict.ts';

/** A pill that was looked for by its id. */
export interface Found {
  readonly pill: WeighedPill;
  /** Of the log its cursor belongs to, where that is not ours any more. */
  readonly epoch: string | undefined;
  /** How often it came again, alike and otherwise; undefined where it is too long ago to know. */
  readonly repeats: number | undefined;
  readonly conflicts: number | undefined;
}

export interface Search {
  /** The first of each symbol. */
  readonly found: readonly Found[];
  /** There are more than were looked for. */
  readonly hasMore: boolean;
  /** Why what was not found may exist all the same. */
  readonly fault: Reason | undefined;
  /** Receive time of the oldest pill that was searched; undefined where that is not known. */
  readonly searchedFrom: Micros | undefined;
}

/** Finds pills by id: recent ones in memory, older ones in history. Never rejects. */
export interface Finder {
  find(symbol: string, id: string): Promise<Search>;
  findAll(id: string): Promise<Search>;
}

export interface FinderOptions {
  readonly memory: LogMemory;
  readonly store: Store;
  readonly view: Pick<LatestView, 'reach' | 'processed'>;
  readonly epoch: string;
}

export function createFinder({ memory, store, view, epoch }: FinderOptions): Finder {
  const { recent } = memory;

  /** What memory has, once the view has it too: the verdict is about what the view shows. */
  const remembered = async (symbol: string, id: string): Promise<Found | undefined> => {
    const known = recent.find(symbol, id);
    if (known === undefined) return undefined;
    const { partition, offset } = known.pill;
    if ((view.processed().get(partition) ?? -1) < offset) {
      // In vain it is the view's lag that the verdict tells.
      await view.reach({ epoch, offsets: new Map([[partition, offset]]) });
    }
    const { pill, repeats, conflicts } = known;
    return { pill, epoch: undefined, repeats, conflicts };
  };
  const stored = ({ epoch: of, ...pill }: StoredPill): Found => ({
    ...{ pill, repeats: undefined, conflicts: undefined },
    epoch: of === epoch ? undefined : of,
  });
  /** Why history and memory do not join; asked of the sink before history is. */
  const holeOf = (progress: ReadonlyMap<number, number>, partitions: Iterable<number>) => {
    for (const partition of partitions) {
      const start = recent.startOf(partition) ?? 0;
      const last = progress.get(partition) ?? -1;
      if (last < start - 1) {
        const missing = `${formatCursor(partition, last + 1)} to ${formatCursor(partition, start - 1)}`;
        return incomplete(`${missing} were not searched`);
      }
    }
    return undefined;
  };
  /** What is found, or not, is so without it: a table that does not tell leaves it unknown. */
  const oldest = async (): Promise<Micros | undefined> => {
    try {
      return (await store.oldest()) ?? recent.oldestAt;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return undefined;
    }
  };
  const history = async (
    id: string,
    symbol: string | undefined,
    partitions: Iterable<number>,
  ): Promise<Search> => {
    const max = symbol === undefined ? VERIFY_LIMITS.listMax + 1 : 1;
    try {
      // Found is found. What was not is only missing if the sink had told before how far it is.
      const isOne = symbol !== undefined;
      const first = isOne ? await store.find(id, symbol, max) : [];
      if (first.length > 0) return { ...NOTHING, found: first.map(stored) };
      const progress = await store.progress();
      const rows = await store.find(id, symbol, max);
      const isEmpty = rows.length === 0;
      return {
        found: rows.map(stored),
        hasMore: rows.length > VERIFY_LIMITS.listMax,
        fault: holeOf(progress, partitions),
        searchedFrom: isEmpty ? await oldest() : undefined,
      };
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      const fault = incomplete('history does not answer');
      return { found: [], hasMore: false, fault, searchedFrom: undefined };
    }
  };

  return {
    async find(symbol, id) {
      const known = await remembered(symbol, id);
      if (known !== undefined) return { ...NOTHING, found: [known] };
      // Also where memory reaches back to the first record: history holds former epochs too.
      const search = await history(id, symbol, [memory.partitionOf(symbol)]);
      if (search.found.length > 0) return search;
      // It may have come meanwhile.
      const late = await remembered(symbol, id);
      return late === undefined ? search : { ...NOTHING, found: [late] };
    },
    async findAll(id) {
      const search = await history(id, undefined, recent.starts.keys());
      const bySymbol = new Map(search.found.map((one) => [one.pill.symbol, one]));
      for (const { pill } of recent.findAll(id)) {
        const known = bySymbol.get(pill.symbol);
        // History has the first for all time; memory knows what came of the same one.
        const isOther = known !== undefined && known.pill.offset !== pill.offset;
        if (isOther || bySymbol.size > VERIFY_LIMITS.listMax) continue;
        const found = await remembered(pill.symbol, id);
        if (found !== undefined) bySymbol.set(pill.symbol, found);
      }
      const found = [...bySymbol.values()].sort(bySymbolName);
      const hasMore = found.length > VERIFY_LIMITS.listMax;
      return { ...search, found: found.slice(0, VERIFY_LIMITS.listMax), hasMore };
    },
  };
}

const NOTHING: Search = { found: [], hasMore: false, fault: undefined, searchedFrom: undefined };

function incomplete(detail: string): Reason {
  return { code: 'search_incomplete', detail };
}

function bySymbolName(a: Found, b: Found): number {
  return a.pill.symbol < b.pill.symbol ? -1 : 1;
}
