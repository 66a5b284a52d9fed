import { useEffect, useState } from 'preact/hooks';

/** Draws no more often than this, however much comes. */
const FRAME_MS = 250;
/** Ages go on where nothing comes. */
const TICK_MS = 1_000;

/** Something that says when it has changed. */
export interface Source {
  onChange: () => void;
}

/** Draws the component anew after changes, in step with the screen; never in a hidden tab. */
export function useFrames(source: Source): void {
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
