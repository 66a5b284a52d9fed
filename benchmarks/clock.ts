/**
 * Microseconds of the machine's monotonic clock. The same for all processes of one machine
 * (CLOCK_MONOTONIC, mach_absolute_time), unlike `performance.now()`, which starts at 0 in each.
 */
export function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
