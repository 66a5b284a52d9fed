import { useEffect, useRef, useState } from 'preact/hooks';
import { describeConnection } from '../feed/connection-state.ts';
import type { Feed } from '../feed/market-feed.ts';
import { closedVenues } from '../market/closed-venues.ts';
import { nextOrder, type Order, type Sort } from '../market/order.ts';
import { isCalm } from '../market/pill-rate.ts';
import { localTime } from '../market/platform-clock.ts';
import { ClosedVenues } from './closed-venues.tsx';
import { Gaps } from './gaps.tsx';
import { GeneratorView } from './generator-view.tsx';
import { Header } from './header.tsx';
import { KeyForm } from './key-form.tsx';
import { SymbolView } from './symbol-view.tsx';
import { SortChoice, Table } from './table.tsx';
import { usePlace } from './use-place.ts';
import { type Source, useRedraw } from './use-redraw.ts';
import { useRows } from './use-rows.ts';

/** The whole page. */
export function Page({ feed, source }: { readonly feed: Feed; readonly source: Source }) {
  useRedraw(source);
  const [order, setOrder] = useState<Order>({ by: 'symbol', isDescending: false });
  const [filter, setFilter] = useState('');
  const { market, connection, clock, pillRate, gaps, reads } = feed;
  const place = usePlace();
  // Kept here, in memory alone, so that it outlasts the view.
  const [token, setToken] = useState<string>();
  const rows = useRows(market, order, filter);
  const nowMs = Date.now();
  const { link } = connection;
  const { isCurrent } = describeConnection(connection, nowMs);
  const calm = useRef(true);
  calm.current = isCalm(calm.current, pillRate.perS(nowMs));
  const onSort = (by: Sort) => setOrder(nextOrder(order, by));
  const isReady = market.rows.size > 0 || reads !== undefined;
  const needsKey = link.kind === 'locked' || (link.kind === 'closed' && link.isRefused);
  return (
    <>
      <Header {...{ feed, place, nowMs }} />
      <main>
        {place.kind === 'generator' && <GeneratorView {...{ token, nowMs }} onToken={setToken} />}
        {place.kind !== 'generator' && needsKey && <KeyForm onKey={feed.useKey} />}
        {place.kind === 'symbol' && isReady && (
          <SymbolView {...{ feed, isCurrent }} symbol={place.symbol} nowMs={clock.now(nowMs)} />
        )}
        {place.kind === 'table' && market.rows.size > 0 && (
          <>
            <div class="tools">
              <Filter value={filter} onChange={setFilter} />
              <p class="count">{countOf(rows.length, market)}</p>
              {!isCurrent && connection.lastFrameMs !== undefined && (
                <p class="until">As of {localTime(connection.lastFrameMs)}</p>
              )}
              <SortChoice order={order} onSort={onSort} />
              <Gaps gaps={gaps} />
            </div>
            <ClosedVenues
              venues={closedVenues(market.rows.values(), market.venues)}
              onChoose={setFilter}
            />
            <Table
              {...{ rows, order, onSort, isCurrent }}
              venues={market.venues}
              isCalm={calm.current}
              nowMs={clock.now(nowMs)}
            />
          </>
        )}
        {place.kind === 'table' && rows.length === 0 && !needsKey && (
          <div class="empty">
            <p>{emptyText(feed)}</p>
            {market.rows.size > 0 && (
              <button type="button" onClick={() => setFilter('')}>
                Show all
              </button>
            )}
          </div>
        )}
      </main>
    </>
  );
}

/** Empty if all symbols are shown. */
function countOf(shown: number, { rows, isFull }: Feed['market']): string {
  const count = (value: number) => value.toLocaleString('en');
  const part = shown === rows.size ? '' : `${count(shown)} of ${count(rows.size)} symbols`;
  if (!isFull) return part;
  return `${part === '' ? `${count(rows.size)} symbols` : part}; later ones are not kept`;
}

function Filter(props: { readonly value: string; readonly onChange: (text: string) => void }) {
  const { value, onChange } = props;
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLInputElement;
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <label class="filter">
      <span class="unseen">Filter by symbol, name, venue or market state</span>
      <input
        ref={input}
        type="search"
        placeholder="Filter"
        aria-keyshortcuts="/"
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
        onKeyDown={({ key, currentTarget }) => {
          if (key !== 'Escape') return;
          onChange('');
          currentTarget.blur();
        }}
      />
      <span class="key" aria-hidden="true">
        /
      </span>
    </label>
  );
}

/** Shown instead of an empty table. */
function emptyText({ market, connection }: Feed): string {
  if (market.rows.size > 0) return 'No symbol matches.';
  const isLive = connection.link.kind === 'live';
  return isLive ? 'No pill has arrived yet. The first one will appear here.' : 'No data yet.';
}
