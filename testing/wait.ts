import { setTimeout as sleep } from 'node:timers/promises';

/** An error that ends `waitFor` at once. */
export class GiveUp extends Error {}

/**
 * Polls until `probe` returns a value other than false, undefined or a string; a string says what is
 * missing. Errors of the probe count as "not yet", except `GiveUp`.
 * @throws Error with the last result after `timeoutMs`
 */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | string | false | undefined> | T | string | false | undefined,
  timeoutMs = 150_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
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
    if (performance.now() > deadline) {
      throw new Error(`Waited ${timeoutMs} ms for ${what}; last: ${String(last)}`);
    }
    await sleep(25);
  }
}
