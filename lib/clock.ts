import type { Micros } from '../schemas/timestamp.ts';

let originMicros = performance.timeOrigin * 1000;

/**
 * Wall-clock time in microseconds. The milliseconds are the system clock's, also after it was set;
 * the rest comes from the monotonic clock, held inside the system clock's millisecond, so that
 * the time never goes back unless the system's does.
 */
export function nowMicros(): Micros {
  const wall = Date.now() * 1000;
  const fine = originMicros + performance.now() * 1000;
  const held = Math.min(Math.max(fine, wall), wall + 999);
  originMicros += held - fine;
  return Math.floor(held);
}
