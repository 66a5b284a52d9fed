import { useEffect, useRef, useState } from 'preact/hooks';
import { tell } from '../feed/connection.ts';
import type { Feed } from '../feed/feed.ts';
import { isCalm } from '../market/calm.ts';
import { nextOrder, type Order, type Sort } from '../market/order.ts';
import { localTime } from '../market/time.ts';
import { type Source, useFrames } from './frames.ts';
import { Gaps } from './gaps.tsx';
import { Header } from './header.tsx';
import { KeyForm } from './key-form.tsx';
import { useRows } from './rows.ts';
import { SortChoice, Table } from './table.tsx';

export interface PageProps {
  readonly feed: Feed;
  readonly source: Source;
}

/** The whole page. */
export function Page({ feed, source }: PageProps) {
  useFrames(source);
  const [order, setOrder] = useState<Order>({ by: 'symbol', isDescending: false });
  const [filter, setFilter] = useState('');
  const { market, connection, clock, pace, gaps } = feed;
  const rows = useRows(market.rows, order, filter);
  const nowMs = Date.now();
  const { link } = connection;
  const { isCurrent } = tell(connection, nowMs);
  const calm = useRef(true);
  calm.current = isCalm(calm.current, pace.perS(nowMs));
  const onSort = (by: Sort) => setOrder(nextOrder(order, by));
  const needsKey = link.kind === 'locked' || (link.kind === 'closed' && link.isRefused);
  return (
    <>
      <Header feed={feed} nowMs={nowMs} />
      <main>
        {needsKey && <KeyForm onKey={feed.useKey} />}
        {market.rows.size > 0 && (
          <>
            <div class="tools">
              <Filter value={filter} onChange={setFilter} />
              <p class="count">{countOf(rows.length, market)}</p>
              {!isCurrent && connection.heardMs !== undefined && (
                <p class="until">As of {localTime(connection.heardMs)}</p>
              )}
              <SortChoice order={order} onSort={onSort} />
              <Gaps gaps={gaps} />
            </div>
            <Table
              {...{ rows, order, onSort, isCurrent }}
              isCalm={calm.current}
              nowMs={clock.now(nowMs)}
            />
          </>
        )}
        {rows.length === 0 && !needsKey && (
          <Empty feed={feed} isFiltered={market.rows.size > 0} onClear={() => setFilter('')} />
        )}
      </main>
    </>
  );
}

/** Nothing where all that exists is shown. */
function countOf(shown: number, { rows, isFull }: Feed['market']): string {
  const count = (value: number) => value.toLocaleString('en');
  const part = shown === rows.size ? '' : `${count(shown)} of ${count(rows.size)} symbols`;
  if (!isFull) return part;
  return `${part === '' ? `${count(rows.size)} symbols` : part}; those that came later are not held`;
}

interface FilterProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

function Filter({ value, onChange }: FilterProps) {
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
      <span class="unseen">Filter by symbol or market state</span>
      <input
        ref={input}
        type="search"
        placeholder="Filter"
        aria-keyshortcuts="/"
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
        onKeyDown={({ key }) => key === 'Escape' && onChange('')}
      />
      <span class="key" aria-hidden="true">
        /
      </span>
    </label>
  );
}

interface EmptyProps {
  readonly feed: Feed;
  readonly isFiltered: boolean;
  readonly onClear: () => void;
}

/** What stands where no line is. */
function Empty({ feed, isFiltered, onClear }: EmptyProps) {
  if (isFiltered) {
    return (
      <div class="empty">
        <p>No symbol matches.</p>
        <button type="button" onClick={onClear}>
          Show all
        </button>
      </div>
    );
  }
  const isLive = feed.connection.link.kind === 'live';
  return (
    <div class="empty">
      <p>
        {isLive ? 'No pill has come yet. The first one appears here by itself.' : 'No market yet.'}
      </p>
    </div>
  );
}
