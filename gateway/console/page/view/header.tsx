import { useLayoutEffect, useRef } from 'preact/hooks';
import { tell } from '../feed/connection.ts';
import type { Feed } from '../feed/feed.ts';
import { formatLatency, formatRate } from './format.ts';
import { ThemeToggle } from './theme.tsx';

/** Name, state of the connection, and how much comes how fast. */
export function Header({ feed, nowMs }: { readonly feed: Feed; readonly nowMs: number }) {
  const { pace, market, latencyTo, connection } = feed;
  const latency = pace.medianMs(nowMs);
  const isLive = tell(connection, nowMs).isCurrent;
  const top = useRef<HTMLElement>(null);
  useHeightTold(top);
  return (
    <header class="top" ref={top}>
      <div class="bar">
        <h1>pillole</h1>
        <ConnectionState feed={feed} nowMs={nowMs} />
        <dl class="figures">
          <Figure title="pills / s" value={isLive ? formatRate(pace.perS(nowMs)) : '–'} />
          <Figure title="symbols" value={market.rows.size.toLocaleString('en')} />
          <Figure
            title={latencyTo === 'browser' ? 'received → here' : 'received → sent'}
            value={isLive && latency !== undefined ? formatLatency(latency) : '–'}
          />
        </dl>
        <nav aria-label="Reference">
          <a href="/docs">API</a>
        </nav>
        <ThemeToggle />
      </div>
    </header>
  );
}

/** What sticks below the bar has to know its height, which changes with what the connection says. */
function useHeightTold(bar: { readonly current: HTMLElement | null }): void {
  useLayoutEffect(() => {
    const { style } = document.documentElement;
    const observer = new ResizeObserver(([entry]) => {
      const [box] = entry!.borderBoxSize;
      style.setProperty('--top', `${box!.blockSize}px`);
    });
    observer.observe(bar.current!);
    return () => observer.disconnect();
  }, []);
}

function Figure({ title, value }: { readonly title: string; readonly value: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** Who sits before the page need not wait for it. */
const LONG_WAIT_S = 3;

/** Only its words are announced: a countdown that is read out each second helps nobody. */
function ConnectionState({ feed, nowMs }: { readonly feed: Feed; readonly nowMs: number }) {
  const { tone, word, detail, inS } = tell(feed.connection, nowMs);
  const { link } = feed.connection;
  // With a key that was refused once it would be refused again.
  const canRetry = link.kind === 'closed' && !link.isRefused;
  return (
    <div class={`connection ${tone}`}>
      <p role="status" aria-live="polite">
        <span class="lamp" aria-hidden="true" />
        <strong>{word}</strong>
        {detail !== undefined && <span class="detail"> {detail}</span>}
      </p>
      {inS !== undefined && (
        <span class="countdown">{inS === 0 ? 'trying now' : `in ${inS} s`}</span>
      )}
      {(canRetry || (inS ?? 0) > LONG_WAIT_S) && (
        <button type="button" onClick={feed.retry}>
          Try again
        </button>
      )}
    </div>
  );
}
