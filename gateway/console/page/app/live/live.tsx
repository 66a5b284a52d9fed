import { useEffect, useMemo, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import '../../style/connection.css';
import '../../style/market.css';
import '../../style/market-narrow.css';
import { openFeed } from '../../feed/market-feed.ts';
import { NAME_ORDER, type Order, SORTS } from '../../market/order.ts';
import { ConnectionState, FeedFigures } from '../../view/connection.tsx';
import { MarketTable } from '../../view/market-table.tsx';
import { type Source, useRedraw } from '../../view/use-redraw.ts';
import { PageOf } from '../parts/page.tsx';
import { NeedsPlan, Skeleton } from '../parts/states.tsx';
import { isOfPlans } from '../session/problem.ts';
import { useSession } from '../session/session-context.tsx';
import { symbolPage } from '../symbols/bodies.ts';

/** The market as it changes, over a socket of the account; order and filter are in the address. */
export default function Live() {
  const { client } = useSession();
  const { query, route } = useLocation();
  const [source] = useState<Source>(() => ({ onChange: () => {} }));
  const feed = useMemo(
    () =>
      openFeed(
        () => source.onChange(),
        () => ({ kind: 'session', csrfToken: client.session()?.csrf_token ?? '' }),
      ),
    [client],
  );
  useEffect(() => () => feed.close(), [feed]);
  useRedraw(source);
  const go = (next: Readonly<Record<string, string>>) => {
    const filled = Object.entries({ ...query, ...next }).filter(([, value]) => value !== '');
    const text = new URLSearchParams(filled).toString();
    route(`/app/live${text && `?${text}`}`, true);
  };
  const links = {
    addressOf: symbolPage,
    open: (symbol: string) => route(symbolPage(symbol)),
  };
  const nowMs = Date.now();
  const { link } = feed.connection;
  const isBarred = link.kind === 'closed' && isOfPlans(link.code);
  const isWaiting = link.kind === 'connecting' && feed.market.rows.size === 0;
  return (
    <PageOf title="Live" action={<FeedFigures feed={feed} nowMs={nowMs} />}>
      {isBarred ? (
        <NeedsPlan detail={link.reason} />
      ) : (
        <div class="live">
          <ConnectionState feed={feed} nowMs={nowMs} />
          {isWaiting ? (
            <Skeleton rows={12} />
          ) : (
            <MarketTable
              {...{ feed, nowMs, links }}
              order={orderOf(query)}
              filter={query.q ?? ''}
              onOrder={({ by, isDescending }) => go({ by, way: isDescending ? 'down' : 'up' })}
              onFilter={(q) => go({ q })}
            />
          )}
        </div>
      )}
      <p class="hint">
        The socket is one of your plan’s connections while this page is open. Visitors see{' '}
        <a href="/" target="_self">
          the same market
        </a>{' '}
        where the operator shows it.
      </p>
    </PageOf>
  );
}

function orderOf(query: Readonly<Record<string, string>>): Order {
  const by = SORTS.find((sort) => sort === query.by);
  // Another object for an equal order would sort the rows again in each drawing.
  return by === undefined ? NAME_ORDER : orderBy(by, query.way === 'down');
}

const kept = new Map<string, Order>();

function orderBy(by: Order['by'], isDescending: boolean): Order {
  const name = `${by} ${isDescending}`;
  const order = kept.get(name) ?? { by, isDescending };
  kept.set(name, order);
  return order;
}
