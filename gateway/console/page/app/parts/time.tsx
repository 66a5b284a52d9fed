/** A time in the time zone of the browser; UTC on hover. */
export function Time(props: { readonly of: string | null; readonly otherwise?: string }) {
  const { of: time, otherwise = '' } = props;
  if (time === null) return <>{otherwise}</>;
  return (
    <time dateTime={time} title={time}>
      {localTime(time)}
    </time>
  );
}

/** `Nov 23, 2026, 1:05 PM`, in the time zone of the browser. */
export function localTime(time: string): string {
  return new Date(time).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' });
}
