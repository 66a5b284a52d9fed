import { symbolsPerPartitionMax } from '../../schemas/topic-catalogue.ts';

export type Symbols = ReturnType<typeof createSymbols>;

/**
 * Creates the bounded count of the symbols that this process knows. Consumers see only one
 * partition, so its bound applies here too: they must not refuse a pill that was acknowledged.
 */
export function createSymbols(
  symbolsMax: number,
  partitions: number,
  known: Iterable<{ readonly symbol: string; readonly partition: number }>,
) {
  const confirmed = new Set<string>();
  /** New symbols, with the number of their pills in flight. */
  const inFlight = new Map<string, number>();
  const counts = new Array<number>(partitions).fill(0);
  const partitionMax = symbolsPerPartitionMax(symbolsMax, partitions);
  for (const { symbol, partition } of known) {
    confirmed.add(symbol);
    counts[partition]! += 1;
  }
  const hasRoom = (symbol: string, partition: number) =>
    confirmed.has(symbol) ||
    inFlight.has(symbol) ||
    (confirmed.size + inFlight.size < symbolsMax && counts[partition]! < partitionMax);
  return {
    /** Whether the symbol is known or there is room. */
    hasRoom,
    /** The same; a new symbol counts as in flight from now on. */
    admit(symbol: string, partition: number): boolean {
      if (confirmed.has(symbol)) return true;
      if (!hasRoom(symbol, partition)) return false;
      const pills = inFlight.get(symbol) ?? 0;
      if (pills === 0) counts[partition]! += 1;
      inFlight.set(symbol, pills + 1);
      return true;
    },
    /** A pill of the symbol was acknowledged, so the symbol counts permanently. */
    confirm(symbol: string): void {
      if (inFlight.size > 0 && inFlight.delete(symbol)) confirmed.add(symbol);
    },
    /** A pill of the symbol was not acknowledged. */
    release(symbol: string, partition: number): void {
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
