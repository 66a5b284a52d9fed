import { useEffect, useLayoutEffect, useState } from 'preact/hooks';

/** Extra rows above and below the window, so that scrolling shows no empty space. */
const OVERSCAN = 12;

/**
 * The visible rows: the layout of a thousand rows four times per second would be too slow.
 * @param body the element with the rows; the page itself scrolls
 * @returns the rows to put into the document: from `first`, before `end`
 */
export function useVisibleRows(body: { readonly current: HTMLElement | null }, count: number) {
  const [, setTick] = useState(0);
  // The first drawing does not know yet where the rows begin.
  useLayoutEffect(() => setTick((tick) => tick + 1), []);
  useEffect(() => {
    let asked = 0;
    const ask = () => {
      asked ||= requestAnimationFrame(() => {
        asked = 0;
        setTick((tick) => tick + 1);
      });
    };
    addEventListener('scroll', ask, { passive: true });
    addEventListener('resize', ask);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener('scroll', ask);
      removeEventListener('resize', ask);
    };
  }, []);
  // Tables may have rows of another height than the page, but all of theirs have the same.
  const rowPx = Number.parseFloat(
    getComputedStyle(body.current ?? document.documentElement).getPropertyValue('--row'),
  );
  const topPx = body.current?.getBoundingClientRect().top ?? 0;
  const clamp = (index: number) => Math.min(count, Math.max(0, index));
  const first = clamp(Math.floor(-topPx / rowPx) - OVERSCAN);
  const end = clamp(Math.ceil((innerHeight - topPx) / rowPx) + OVERSCAN);
  return { first, end, rowPx };
}
