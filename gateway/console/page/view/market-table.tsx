import { useEffect, useRef } from 'preact/hooks';
import { describeConnection } from '../feed/connection-state.ts';
import type { Feed } from '../feed/market-feed.ts';
import { closedVenues } from '../market/closed-venues.ts';
import { nextOrder, type Order, type Sort } from '../market/order.ts';
import { isCalm } from '../market/pill-rate.ts';
import { localTime } from '../market/platform-clock.ts';
import { ClosedVenues } from './closed-venues.tsx';
import { Gaps } from './gaps.tsx';
import { SortChoice, Table, type TableProps } from './table.tsx';
import { useRows } from './use-rows.ts';

/** The market with its filter; both pages that show it keep order and filter themselves. */
export function MarketTable(
  props: Pick<TableProps, 'order' | 'links'> & {
    readonly feed: Feed;
    readonly nowMs: number;
    readonly filter: string;
    readonly onOrder: (order: Order) => void;
    readonly onFilter: (text: string) => void;
  },
) {
  const { feed, nowMs, order, filter, links, onOrder, onFilter } = props;
  const { market, connection, clock, pillRate, gaps } = feed;
  const rows = useRows(market, order, filter);
  const { isCurrent } = describeConnection(connection, nowMs);
  const calm = useRef(true);
  calm.current = isCalm(calm.current, pillRate.perS(nowMs));
  const onSort = (by: Sort) => onOrder(nextOrder(order, by));
  return (
    <>
      {market.rows.size > 0 && (
        <>
          <div class="tools">
            <Filter value={filter} onChange={onFilter} />
            <p class="count">{countOf(rows.length, market)}</p>
            {!isCurrent && connection.lastFrameMs !== undefined && (
              <p class="until">As of {localTime(connection.lastFrameMs)}</p>
            )}
            <SortChoice order={order} onSort={onSort} />
            <Gaps gaps={gaps} />
          </div>
          <ClosedVenues
            venues={closedVenues(market.rows.values(), market.venues)}
            onChoose={onFilter}
          />
          <Table
            {...{ rows, order, onSort, isCurrent, links }}
            venues={market.venues}
            isCalm={calm.current}
            nowMs={clock.now(nowMs)}
          />
        </>
      )}
      {rows.length === 0 && (
        <div class="empty">
          <p>{emptyText(feed)}</p>
          {market.rows.size > 0 && (
            <button type="button" onClick={() => onFilter('')}>
              Show all
            </button>
          )}
        </div>
      )}
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
