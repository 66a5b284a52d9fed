import { setTimeout as sleep } from 'node:timers/promises';

/** An error that ends `waitFor` at once. */
export class GiveUp extends Error {}

/** Least and most time between two probes. */
const PAUSE_MS = { least: 10, most: 100 };

/**
 * Polls until `probe` returns a value other than false, undefined or a string; a string says what is
 * missing. Errors of the probe count as "not yet", except `GiveUp`. The pause is a twentieth of the
 * time waited: many probes are calls to a process or a browser, which wait for the CPU too.
 * @throws Error with the last result after `timeoutMs`
 */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | string | false | undefined> | T | string | false | undefined,
  timeoutMs = 150_000,
): Promise<T> {
  const began = performance.now();
  let last: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== false && answer !== undefined && typeof answer !== 'string') return answer;
      last = answer;
    } catch (error) {
      if (error instanceof GiveUp) throw error;
      last = error;
    }
    const waitedMs = performance.now() - began;
    if (waitedMs > timeoutMs) {
      throw new Error(`Waited ${timeoutMs} ms for ${what}; last: ${String(last)}`);
    }
    await sleep(Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, waitedMs / 20)));
  }
}
