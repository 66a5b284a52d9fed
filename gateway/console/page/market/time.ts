/** µs since 1970 of `YYYY-MM-DDTHH:MM:SS.ffffffZ`; `Date.parse` keeps ms alone. */
export function microsOf(iso: string): number {
  return Date.parse(iso) * 1_000 + Number(iso.slice(23, 26));
}

/** `14:03:07` of this machine's zone. @param ms since 1970 */
export function localTime(ms: number): string {
  return new Date(ms).toLocaleTimeString([], { hourCycle: 'h23' });
}
