import { useEffect, useLayoutEffect, useState } from 'preact/hooks';

/** Extra rows above and below the window, so that scrolling shows no empty space. */
const OVERSCAN = 12;

/** The rows in the window, as numbers that may be outside of the list. */
interface Window {
  readonly top: number;
  readonly bottom: number;
  readonly rowPx: number;
}

/**
 * The visible rows: the layout of a thousand rows four times per second would be too slow. Places
 * are measured when they may have changed, never while figures are drawn: the browser would have to
 * lay out the page twice.
 * @param body the element with the rows; the page itself scrolls
 * @returns the rows to put into the document: from `first`, before `end`; `isSeen` of an index
 */
export function useVisibleRows(body: { readonly current: HTMLElement | null }, count: number) {
  const [{ top, bottom, rowPx }, setWindow] = useState(() => windowOf(null));
  const measure = () => {
    const now = windowOf(body.current);
    setWindow((was) => (isSame(was, now) ? was : now));
  };
  // The first drawing does not know yet where the rows begin.
  useLayoutEffect(measure, []);
  useEffect(() => {
    let asked = 0;
    const ask = () => {
      asked ||= requestAnimationFrame(() => {
        asked = 0;
        measure();
      });
    };
    addEventListener('scroll', ask, { passive: true });
    addEventListener('resize', ask);
    // What appears above the rows moves them, and makes the page higher.
    const sized = new ResizeObserver(measure);
    sized.observe(document.body);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener('scroll', ask);
      removeEventListener('resize', ask);
      sized.disconnect();
    };
  }, []);
  const clamp = (index: number) => Math.min(count, Math.max(0, index));
  return {
    ...{ first: clamp(top - OVERSCAN), end: clamp(bottom + OVERSCAN), rowPx },
    isSeen: (index: number) => index >= top && index < bottom,
  };
}

function windowOf(body: HTMLElement | null): Window {
  // Tables may have rows of another height than the page, but all of theirs have the same.
  const style = getComputedStyle(body ?? document.documentElement);
  const rowPx = Number.parseFloat(style.getPropertyValue('--row'));
  const topPx = body?.getBoundingClientRect().top ?? 0;
  return {
    top: Math.floor(-topPx / rowPx),
    bottom: Math.ceil((innerHeight - topPx) / rowPx),
    rowPx,
  };
}

function isSame(a: Window, b: Window): boolean {
  return a.top === b.top && a.bottom === b.bottom && a.rowPx === b.rowPx;
}
