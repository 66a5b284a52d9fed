import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Feed } from '../feed/market-feed.ts';
import { ConnectionState, FeedFigures } from './connection.tsx';
import { ThemeToggle } from './theme.tsx';
import { GENERATOR_ADDRESS, type Place } from './use-place.ts';

/** Name, state of the connection, and rates. */
export function Header(props: {
  readonly feed: Feed;
  readonly place: Place;
  readonly nowMs: number;
}) {
  const { feed, place, nowMs } = props;
  const top = useRef<HTMLElement>(null);
  useBarHeight(top);
  return (
    <header class="top" ref={top}>
      <div class="bar">
        <h1>pillole</h1>
        <ConnectionState feed={feed} nowMs={nowMs} />
        <FeedFigures feed={feed} nowMs={nowMs} />
        <nav aria-label="Pages">
          <a
            href={GENERATOR_ADDRESS}
            aria-current={place.kind === 'generator' ? 'page' : undefined}
          >
            Generator
          </a>
          <a href="/docs">API</a>
          <ConsoleLink hasSession={feed.hasSession} />
        </nav>
        <ThemeToggle />
      </div>
    </header>
  );
}

/** The way into the console. The console itself asks for a password where it needs one. */
function ConsoleLink({ hasSession }: Pick<Feed, 'hasSession'>) {
  const [address, text] = hasSession === false ? ['/app/sign-in', 'Sign in'] : ['/app', 'Console'];
  return (
    <a class="console" href={address}>
      {text}
    </a>
  );
}

/** Elements that stick below the bar need its height, which changes with the connection's text. */
function useBarHeight(bar: { readonly current: HTMLElement | null }): void {
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
