const HEIGHT = 20;
const STEP = 5;

/** Calls of days as bars, oldest first, and as a sum. */
export function CallBars({ days }: { readonly days: readonly number[] }) {
  const sum = days.reduce((total, calls) => total + calls, 0);
  if (sum === 0) return <>None</>;
  const most = Math.max(...days);
  return (
    <>
      <svg
        class="bars"
        viewBox={`0 0 ${days.length * STEP} ${HEIGHT}`}
        width={days.length * STEP}
        height={HEIGHT}
        aria-hidden="true"
        focusable="false"
      >
        {days.map((calls, day) => {
          // A day with a single call is visible beside one with a million.
          const height = calls === 0 ? 0 : Math.max(1, (calls / most) * HEIGHT);
          return (
            <rect key={day} x={day * STEP} y={HEIGHT - height} width={STEP - 1} {...{ height }} />
          );
        })}
      </svg>{' '}
      {sum.toLocaleString('en')}
    </>
  );
}
