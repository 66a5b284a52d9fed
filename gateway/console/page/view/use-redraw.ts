import { useEffect, useState } from 'preact/hooks';

/** Shortest time between two drawings, however many pills arrive. */
const FRAME_MS = 250;
/** Ages change even if no pills arrive. */
const TICK_MS = 1_000;

/** Calls `onChange` after each change. */
export interface Source {
  onChange: () => void;
}

/** Redraws the component after changes, in step with the screen; never in a hidden tab. */
export function useRedraw(source: Source): void {
  const [, setFrame] = useState(0);
  useEffect(() => {
    let drawnMs = Number.NEGATIVE_INFINITY;
    let isAsked = false;
    const draw = () => {
      isAsked = false;
      drawnMs = performance.now();
      setFrame((frame) => frame + 1);
    };
    const ask = () => {
      if (isAsked) return;
      isAsked = true;
      const waitMs = Math.max(0, drawnMs + FRAME_MS - performance.now());
      setTimeout(() => requestAnimationFrame(draw), waitMs);
    };
    source.onChange = ask;
    ask();
    const ticking = setInterval(ask, TICK_MS);
    return () => {
      clearInterval(ticking);
      source.onChange = () => {};
    };
  }, [source]);
}
