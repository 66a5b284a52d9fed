const HEIGHT = 20;
const STEP = 5;

/** Counts as bars without a scale, the oldest first; the text beside them says what they are. */
export function Bars(props: { readonly counts: readonly number[]; readonly height?: number }) {
  const { counts, height: full = HEIGHT } = props;
  const most = Math.max(...counts, 1);
  return (
    <svg
      class="bars"
      viewBox={`0 0 ${counts.length * STEP} ${full}`}
      width={counts.length * STEP}
      height={full}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      {counts.map((count, index) => {
        // A single one is visible beside a million.
        const height = count === 0 ? 0 : Math.max(1, (count / most) * full);
        return (
          <rect key={index} x={index * STEP} y={full - height} width={STEP - 1} {...{ height }} />
        );
      })}
    </svg>
  );
}
