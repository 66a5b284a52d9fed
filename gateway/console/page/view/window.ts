import { useEffect, useState } from 'preact/hooks';

/** Rows beyond the edges that are there all the same, so that scrolling finds no hole. */
const OVERSCAN = 12;

/** Which rows are in the document: from `first`, before `end`. */
export interface Visible {
  readonly first: number;
  readonly end: number;
  readonly rowPx: number;
}

/**
 * The rows that can be seen: a thousand of them would be laid out anew four times a second.
 * @param body what holds the rows; the page itself scrolls
 */
export function useVisible(body: { readonly current: HTMLElement | null }, count: number): Visible {
  const [, setTick] = useState(0);
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
  const rowPx = Number.parseFloat(
    getComputedStyle(document.documentElement).getPropertyValue('--row'),
  );
  const topPx = body.current?.getBoundingClientRect().top ?? 0;
  const first = clamp(Math.floor(-topPx / rowPx) - OVERSCAN, count);
  const end = clamp(Math.ceil((innerHeight - topPx) / rowPx) + OVERSCAN, count);
  return { first, end, rowPx };
}

function clamp(index: number, count: number): number {
  return Math.min(count, Math.max(0, index));
}
