import type { Micros } from '../schemas/timestamp.ts';

let originMicros = performance.timeOrigin * 1000;

/**
 * Wall-clock time in microseconds. The milliseconds are the system clock's, also after it was set;
 * the rest comes from the monotonic clock, re-anchored whenever the two disagree.
 */
export function nowMicros(): Micros {
  const wall = Date.now() * 1000;
  const fine = originMicros + performance.now() * 1000;
  if (fine >= wall && fine < wall + 1000) return Math.floor(fine);
  originMicros += wall - fine;
  return wall;
}
