import { formatSpread } from './format.ts';
import { useKept } from './use-kept.ts';

const WIDTH = 120;
const HEIGHT = 24;
/** Room for the width of the line and for the dot at its end. */
const MARGIN = 2.5;
/** Fewer spreads do not fill the width: a line of two points would suggest a long trend. */
const PLACES_MIN = 20;

/**
 * The last spreads as a line, and in words for screen readers.
 * @param props.count changes with each pill
 * @param props.isCalm whether each pill is drawn at once; otherwise the line, which costs the most
 * of a row, is drawn once a second
 */
export function Spark(props: {
  readonly spreads: readonly number[];
  readonly count: number;
  readonly isCalm: boolean;
}) {
  const { spreads, count, isCalm } = props;
  const kept = { mayWait: !isCalm, inputs: [spreads], figure: count };
  return useKept(kept, () => <Line spreads={spreads} />);
}

function Line({ spreads }: { readonly spreads: readonly number[] }) {
  const low = Math.min(...spreads);
  const high = Math.max(...spreads);
  const points = pointsOf(spreads, low, high);
  const end = points.at(-1);
  return (
    <>
      <svg
        class="spark"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        focusable="false"
      >
        <polyline points={points.map((point) => point.join()).join(' ')} />
        {end && <line x1={end[0]} y1={end[1]} x2={end[0]} y2={end[1]} />}
      </svg>
      <span class="unseen">
        {spreads.length < 2
          ? 'one spread so far'
          : `${spreads.length} spreads from ${formatSpread(low)} to ${formatSpread(high)}`}
      </span>
    </>
  );
}

/** Points of the line: the newest at the right edge, spreads without change in the middle. */
function pointsOf(spreads: readonly number[], low: number, high: number): [number, number][] {
  const step = (WIDTH - 2 * MARGIN) / (Math.max(PLACES_MIN, spreads.length) - 1);
  return spreads.map((spread, index) => {
    const share = high === low ? 0.5 : (spread - low) / (high - low);
    const x = WIDTH - MARGIN - (spreads.length - 1 - index) * step;
    const y = HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN);
    return [Number(x.toFixed(1)), Number(y.toFixed(1))];
  });
}
