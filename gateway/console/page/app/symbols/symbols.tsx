import { useLocation } from 'preact-iso';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { symbolPage } from './bodies.ts';
import { type KnownSymbol, useSymbols } from './use-symbols.ts';

/** The rest is found by the filter. */
const SHOWN_MAX = 200;

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
        placeholder="Filter by symbol or venue"
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
  const over = found.length - SHOWN_MAX;
  return (
    <>
      <table class="stacked">
        <thead>
          <tr>
            <th>Symbol</th>
            <th>Venue</th>
            <th class="number">Usual interval</th>
            <th>Last pill</th>
          </tr>
        </thead>
        <tbody>
          {found.slice(0, SHOWN_MAX).map(({ symbol, venue, last, cadence_ms: cadence }) => (
            <tr key={symbol}>
              <td data-title="Symbol">
                <a href={symbolPage(symbol)}>{symbol}</a>
              </td>
              <td data-title="Venue">{venue ?? 'none'}</td>
              <td data-title="Usual interval" class="number">
                {cadence === null ? '–' : `${(cadence / 1_000).toFixed(2)} s`}
              </td>
              <td data-title="Last pill">
                <Time of={last.timestamp} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.length === 0 && <p>No symbol contains “{filter}”.</p>}
      {over > 0 && <p class="hint">{over} more: filter for them.</p>}
      {isCut && <p class="hint">Only the first 5,000 symbols are listed.</p>}
    </>
  );
}
