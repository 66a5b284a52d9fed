import type { Micros } from '../../schemas/timestamp.ts';

let originMicros = performance.timeOrigin * 1000;

/**
 * Wall-clock time in microseconds. The milliseconds are those of the system clock, even after the
 * clock was set; the microseconds come from the monotonic clock and stay inside the system clock's
 * millisecond, so that the time never goes back unless the system clock does.
 */
export function nowMicros(): Micros {
  const wall = Date.now() * 1000;
  const fine = originMicros + performance.now() * 1000;
  const held = Math.min(Math.max(fine, wall), wall + 999);
  originMicros += held - fine;
  return Math.floor(held);
}
