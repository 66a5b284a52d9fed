import { Bars } from '../parts/bars.tsx';

/** Calls of days as bars, oldest first, and as a sum. */
export function CallBars({ days }: { readonly days: readonly number[] }) {
  const sum = days.reduce((total, calls) => total + calls, 0);
  if (sum === 0) return <>None</>;
  return (
    <>
      <Bars counts={days} /> {sum.toLocaleString('en')}
    </>
  );
}
