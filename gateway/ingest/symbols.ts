import { symbolsPerPartitionMax } from '../../schemas/topics.ts';

/** The distinct symbols that this process knows of, bounded. */
export interface Symbols {
  /** Whether there is room; a new symbol counts from now on, as in flight. */
  admit(symbol: string, partition: number): boolean;
  /** A pill of the symbol was acknowledged: it counts for good. */
  confirm(symbol: string): void;
  /** A pill of the symbol was not acknowledged. */
  release(symbol: string, partition: number): void;
  size(): number;
}

export interface SymbolsOptions {
  readonly symbolsMax: number;
  readonly partitions: number;
  readonly known: Iterable<{ readonly symbol: string; readonly partition: number }>;
}

/**
 * Creates the count of symbols. Consumers decide from one partition alone, so its bound is kept
 * here too: what is acknowledged must not be refused by them.
 */
export function createSymbols({ symbolsMax, partitions, known }: SymbolsOptions): Symbols {
  const confirmed = new Set<string>();
  /** New symbols, with the number of their pills in flight. */
  const inFlight = new Map<string, number>();
  const counts = new Array<number>(partitions).fill(0);
  const partitionMax = symbolsPerPartitionMax(symbolsMax, partitions);
  for (const { symbol, partition } of known) {
    confirmed.add(symbol);
    counts[partition]! += 1;
  }
  return {
    admit(symbol, partition) {
      if (confirmed.has(symbol)) return true;
      const pills = inFlight.get(symbol);
      if (pills !== undefined) {
        inFlight.set(symbol, pills + 1);
        return true;
      }
      if (confirmed.size + inFlight.size >= symbolsMax) return false;
      if (counts[partition]! >= partitionMax) return false;
      inFlight.set(symbol, 1);
      counts[partition]! += 1;
      return true;
    },
    confirm(symbol) {
      if (inFlight.size > 0 && inFlight.delete(symbol)) confirmed.add(symbol);
    },
    release(symbol, partition) {
      const pills = inFlight.get(symbol);
      if (pills === undefined) return;
      if (pills > 1) inFlight.set(symbol, pills - 1);
      else {
        inFlight.delete(symbol);
        counts[partition]! -= 1;
      }
    },
    size: () => confirmed.size + inFlight.size,
  };
}
