import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Polls until `check` returns true; an error of `check` counts as "not yet". `gaveUp` is called
 * before each try: a string ends the wait at once with that reason.
 * @throws Error with the last reason when the time is over
 */
export async function waitUntil(
  name: string,
  check: () => Promise<boolean> | boolean,
  options: {
    readonly timeoutMs: number;
    readonly intervalMs?: number;
    readonly gaveUp?: () => string | undefined;
  },
): Promise<void> {
  const deadline = Date.now() + options.timeoutMs;
  let last = '';
  for (;;) {
    const reason = options.gaveUp?.();
    if (reason !== undefined) throw new Error(`${name}: ${reason}`);
    try {
      if (await check()) return;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() >= deadline) {
      const seconds = Math.round(options.timeoutMs / 1000);
      throw new Error(`${name}: timed out after ${seconds} s${last === '' ? '' : ` (${last})`}`);
    }
    await sleep(options.intervalMs ?? 100);
  }
}

/** True when the URL answers 200 within two seconds; false for any other status. */
export async function answers200(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.arrayBuffer();
  return response.status === 200;
}
