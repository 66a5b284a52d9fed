import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { describeConnection } from '../feed/connection-state.ts';
import type { Feed } from '../feed/market-feed.ts';
import { NAME_ORDER, type Order } from '../market/order.ts';
import { GeneratorView } from './generator-view.tsx';
import { Header } from './header.tsx';
import { KeyForm } from './key-form.tsx';
import { MarketTable } from './market-table.tsx';
import { SymbolView } from './symbol-view.tsx';
import { PLACE_LINKS, usePlace } from './use-place.ts';
import { type Source, useRedraw } from './use-redraw.ts';
import { WayBack } from './way-back.tsx';

/** The whole page. */
export function Page({ feed, source }: { readonly feed: Feed; readonly source: Source }) {
  useRedraw(source);
  const [order, setOrder] = useState<Order>(NAME_ORDER);
  const [filter, setFilter] = useState('');
  const { market, connection, clock, reads } = feed;
  const place = usePlace();
  // Kept here, in memory alone, so that it outlasts the view.
  const [token, setToken] = useState<string>();
  const nowMs = Date.now();
  const { link } = connection;
  const { isCurrent } = describeConnection(connection, nowMs);
  const isReady = market.rows.size > 0 || reads !== undefined;
  const needsKey = link.kind === 'locked' || (link.kind === 'closed' && link.isRefused);
  return (
    <>
      <Header {...{ feed, place, nowMs }} />
      <main>
        {place.kind === 'generator' && (
          <GeneratorPlace>
            <GeneratorView {...{ token, nowMs }} onToken={setToken} />
          </GeneratorPlace>
        )}
        {place.kind !== 'generator' && needsKey && <KeyForm onKey={feed.useKey} />}
        {place.kind === 'symbol' && isReady && (
          <SymbolView {...{ feed, isCurrent }} symbol={place.symbol} nowMs={clock.now(nowMs)} />
        )}
        {place.kind === 'table' && (market.rows.size > 0 || !needsKey) && (
          <MarketTable
            {...{ feed, nowMs, order, filter }}
            links={PLACE_LINKS}
            onOrder={setOrder}
            onFilter={setFilter}
          />
        )}
      </main>
    </>
  );
}

function GeneratorPlace({ children }: { readonly children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <article class="generator-view">
      <WayBack />
      <h2 ref={heading} tabIndex={-1}>
        Generator
      </h2>
      {children}
    </article>
  );
}
