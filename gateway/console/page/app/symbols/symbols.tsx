import { useRef } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { useVisibleRows } from '../../view/use-visible-rows.ts';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { symbolPage } from './bodies.ts';
import { type KnownSymbol, useSymbols } from './use-symbols.ts';

/** Every symbol that has pills; the filter is in the address. */
export default function Symbols() {
  const { query, route } = useLocation();
  const filter = query.q ?? '';
  const list = useSymbols();
  return (
    <PageOf title="Symbols">
      <input
        type="search"
        aria-label="Filter by symbol or venue"
        placeholder="Symbol or venue"
        value={filter}
        onInput={(event) => {
          const q = event.currentTarget.value;
          route(q === '' ? '/app/symbols' : `/app/symbols?${new URLSearchParams({ q })}`, true);
        }}
      />
      <WhenLoaded of={list} rows={8}>
        {({ symbols, isCut }) => <SymbolTable list={symbols} isCut={isCut} filter={filter} />}
      </WhenLoaded>
    </PageOf>
  );
}

function SymbolTable(props: {
  readonly list: readonly KnownSymbol[];
  readonly isCut: boolean;
  readonly filter: string;
}) {
  const { list, isCut, filter } = props;
  const wanted = filter.trim().toUpperCase();
  const found = list.filter(
    ({ symbol, venue }) => symbol.toUpperCase().includes(wanted) || venue?.includes(wanted),
  );
  if (list.length === 0) {
    return <p class="empty">No symbol has pills yet. They are listed as soon as they arrive.</p>;
  }
  return (
    <>
      {found.length === 0 ? <p>No symbol contains “{filter}”.</p> : <Rows of={found} />}
      {isCut && <p class="hint">Only the first 5,000 symbols are listed.</p>}
    </>
  );
}

/** Only visible rows are in the document. */
function Rows({ of: list }: { readonly of: readonly KnownSymbol[] }) {
  const body = useRef<HTMLTableSectionElement>(null);
  const { first, end, rowPx } = useVisibleRows(body, list.length);
  const space = (rows: number) => (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can be focused
    <tr aria-hidden="true">
      <td class="space" colSpan={4} style={{ height: `${rows * rowPx}px` }} />
    </tr>
  );
  return (
    <table class="lines" aria-rowcount={list.length + 1}>
      <caption>
        {list.length.toLocaleString('en')} {list.length === 1 ? 'symbol' : 'symbols'}
      </caption>
      <thead>
        <tr aria-rowindex={1}>
          <th>Symbol</th>
          <th>Venue</th>
          <th class="number">Usual interval</th>
          <th>Last pill</th>
        </tr>
      </thead>
      <tbody ref={body}>
        {first > 0 && space(first)}
        {list.slice(first, end).map(({ symbol, venue, last, cadence_ms: cadence }, at) => (
          <tr key={symbol} aria-rowindex={first + at + 2}>
            <td>
              <a href={symbolPage(symbol)}>{symbol}</a>
            </td>
            <td>{venue ?? 'none'}</td>
            <td class="number">{cadence === null ? '–' : `${(cadence / 1_000).toFixed(2)} s`}</td>
            <td>
              <Time of={last.timestamp} />
            </td>
          </tr>
        ))}
        {end < list.length && space(list.length - end)}
      </tbody>
    </table>
  );
}
