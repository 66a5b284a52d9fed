/** A time in the time zone of the browser; on hover, how long ago it was, and the same in UTC. */
export function Time(props: { readonly of: string | null; readonly otherwise?: string }) {
  const { of: time, otherwise = '' } = props;
  if (time === null) return <>{otherwise}</>;
  const describe = ({ currentTarget: element }: { readonly currentTarget: HTMLElement }) => {
    // Only now: a page may have been open for hours.
    element.title = `${relativeTime(time, Date.now())} · ${utcTime(time)}`;
  };
  return (
    <time dateTime={time} onPointerEnter={describe} title={utcTime(time)}>
      {localTime(time)}
    </time>
  );
}

/** `Nov 23, 2026, 13:05:09`, in the time zone of the browser. */
export function localTime(time: string): string {
  return LOCAL.format(new Date(time));
}

/** Made once: tables of thousands of lines draw a screen of times in each frame of a scroll. */
const LOCAL = new Intl.DateTimeFormat('en', {
  ...{ dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' },
});

function utcTime(time: string): string {
  return `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;
const WORDS = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** `3 minutes ago`, `in 2 days`. */
export function relativeTime(time: string, nowMs: number): string {
  const ms = Date.parse(time) - nowMs;
  const [unit, size] = UNITS.find(([, unitMs]) => Math.abs(ms) >= unitMs) ?? ['second', 1_000];
  return WORDS.format(Math.round(ms / size), unit);
}

/** `Asia/Tokyo, UTC+9`: all times of the console are in this zone unless they say UTC. */
export function zoneName(): string {
  const { timeZone } = new Intl.DateTimeFormat('en').resolvedOptions();
  const parts = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset' }).formatToParts();
  const offset = parts.find(({ type }) => type === 'timeZoneName')?.value.replace('GMT', 'UTC');
  return timeZone === 'UTC' ? 'UTC' : `${timeZone}, ${offset}`;
}
