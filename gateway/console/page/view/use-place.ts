import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** The addresses of the table and of the generator's view; no symbol has small letters. */
export const TABLE_ADDRESS = '#all';
export const GENERATOR_ADDRESS = '#generator';

/** What the page shows. */
export type Place =
  | { readonly kind: 'table' | 'generator' }
  | { readonly kind: 'symbol'; readonly symbol: string };

/** The address of a symbol's view on this page. */
export function addressOf(symbol: string): string {
  return `#${encodeURIComponent(symbol)}`;
}

/** Links of the table to the views of its symbols. */
export const PLACE_LINKS = {
  addressOf,
  open(symbol: string): void {
    location.hash = addressOf(symbol);
  },
};

/**
 * The place that the address names. On the way back the table is where it was, and the link that
 * led away has the focus.
 */
export function usePlace(): Place {
  const [address, setAddress] = useState(readAddress);
  const table = useRef({ address, scrollY: 0 });
  useEffect(() => {
    const onHash = () => {
      const { current } = table;
      if (readAddress() !== TABLE_ADDRESS && current.address === TABLE_ADDRESS) {
        current.scrollY = scrollY;
      }
      setAddress(readAddress());
    };
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, []);
  useLayoutEffect(() => {
    const { address: last, scrollY: top } = table.current;
    table.current.address = address;
    scrollTo(0, address === TABLE_ADDRESS ? top : 0);
    if (address !== TABLE_ADDRESS || last === TABLE_ADDRESS) return;
    const link = document.querySelector<HTMLElement>(`a[href="${CSS.escape(last)}"]`);
    link?.focus({ preventScroll: true });
  }, [address]);
  return placeOf(address);
}

function placeOf(address: string): Place {
  if (address === TABLE_ADDRESS) return { kind: 'table' };
  if (address === GENERATOR_ADDRESS) return { kind: 'generator' };
  return { kind: 'symbol', symbol: decodeURIComponent(address.slice(1)) };
}

/** In the form that links have; the table's if there is none. */
function readAddress(): string {
  try {
    const name = decodeURIComponent(location.hash.slice(1));
    return name === '' || location.hash === TABLE_ADDRESS ? TABLE_ADDRESS : addressOf(name);
  } catch {
    return TABLE_ADDRESS;
  }
}
