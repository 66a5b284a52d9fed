import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** The address of the table; no symbol has small letters. */
export const TABLE_ADDRESS = '#all';

/** The address of a symbol's view on this page. */
export function addressOf(symbol: string): string {
  return `#${encodeURIComponent(symbol)}`;
}

export function showTable(): void {
  location.hash = TABLE_ADDRESS;
}

/**
 * The symbol that the address names; undefined: the table. On the way back the table is where it
 * was, and the row has the focus.
 */
export function useChosenSymbol(): string | undefined {
  const [symbol, setSymbol] = useState(readAddress);
  const table = useRef({ symbol, scrollY: 0 });
  useEffect(() => {
    const onHash = () => {
      if (readAddress() !== undefined && table.current.symbol === undefined) {
        table.current.scrollY = scrollY;
      }
      setSymbol(readAddress());
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  useLayoutEffect(() => {
    const { symbol: last, scrollY: top } = table.current;
    table.current.symbol = symbol;
    scrollTo(0, symbol === undefined ? top : 0);
    if (symbol !== undefined || last === undefined) return;
    const link = document.querySelector<HTMLElement>(`a[href="${CSS.escape(addressOf(last))}"]`);
    link?.focus({ preventScroll: true });
  }, [symbol]);
  return symbol;
}

function readAddress(): string | undefined {
  if (location.hash === TABLE_ADDRESS) return undefined;
  try {
    return decodeURIComponent(location.hash.slice(1)) || undefined;
  } catch {
    return undefined;
  }
}
