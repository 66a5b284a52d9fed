import { setTimeout as sleep } from 'node:timers/promises';
import type { Percentiles } from './histogram.ts';

/** A run whose p99 of lateness is above this measures the load generator: it is invalid. */
const LATENESS_P99_MAX_MICROS = 10_000;
const POLL_MS = 50;

/** The note of a cell that is invalid because its load was sent too late. */
export const LATE_NOTE = 'INVALID: over 10 ms late';

/** Whether the load was sent as planned: otherwise the figures measure the generator. */
export function isOnTime({ p99 }: Pick<Percentiles, 'p99'>): boolean {
  return p99 <= LATENESS_P99_MAX_MICROS;
}

/**
 * Measures every item once in each round; rounds count from 1. Each begins with a different item,
 * so that drift of the machine affects all items alike.
 */
export async function inRounds<Item, Cell extends object>(
  items: readonly Item[],
  rounds: number,
  measure: (item: Item, round: number) => Promise<Cell>,
): Promise<(Cell & { readonly round: number })[]> {
  const cells: (Cell & { readonly round: number })[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (let i = 0; i < items.length; i += 1) {
      const item = items[(i + round - 1) % items.length]!;
      cells.push({ ...(await measure(item, round)), round });
    }
  }
  return cells;
}

/** Waits until this many pills have arrived; gives up at the deadline, or when none arrive. */
export async function waitForArrivals(
  arrived: () => Promise<number> | number,
  wanted: number,
  { maxMs, stallMs = maxMs }: { readonly maxMs: number; readonly stallMs?: number | undefined },
): Promise<void> {
  const deadline = performance.now() + maxMs;
  let last = -1;
  let lastAt = performance.now();
  for (;;) {
    const count = await arrived();
    const now = performance.now();
    if (count >= wanted || now > deadline) return;
    if (count > last) [last, lastAt] = [count, now];
    else if (now - lastAt > stallMs) return;
    await sleep(POLL_MS);
  }
}

export function noteOf(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}
