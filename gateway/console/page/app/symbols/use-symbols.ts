import { type Loaded, useLoadBy } from '../parts/use-load.ts';
import type { Client } from '../session/client.ts';

/** The first symbols by name; each page of 500 is a call. */
const PAGES_MAX = 10;

interface Page {
  readonly data: readonly KnownSymbol[];
  readonly next: string | null;
}

export interface KnownSymbol {
  readonly symbol: string;
  readonly venue: string | null;
  readonly last: { readonly timestamp: string };
  readonly cadence_ms: number | null;
}

export interface SymbolList {
  readonly symbols: readonly KnownSymbol[];
  /** Whether there are more than 5,000. */
  readonly isCut: boolean;
}

/** Reads the symbols that have pills, at most 5,000. @param isWanted false: nothing is read yet */
export function useSymbols(isWanted = true): Loaded<SymbolList> {
  return useLoadBy(isWanted ? '/api/symbols' : undefined, readSymbols);
}

async function readSymbols(client: Client): Promise<SymbolList> {
  const symbols: KnownSymbol[] = [];
  let path: string | null = '/api/symbols?limit=500';
  for (let pages = 0; path !== null && pages < PAGES_MAX; pages += 1) {
    const page: Page = await client.send<Page>('GET', path);
    symbols.push(...page.data);
    path = page.next;
  }
  return { symbols, isCut: path !== null };
}
