import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  /** Asked before each try; a string ends the wait at once with this reason. */
  readonly gaveUp?: () => string | undefined;
}

/**
 * Polls until `check` answers true.
 * @throws Error with the last reason when it does not come true in time.
 */
export async function waitUntil(
  what: string,
  check: () => Promise<boolean> | boolean,
  options: WaitOptions,
): Promise<void> {
  const deadline = Date.now() + options.timeoutMs;
  let last = '';
  for (;;) {
    const reason = options.gaveUp?.();
    if (reason !== undefined) throw new Error(`${what}: ${reason}`);
    try {
      if (await check()) return;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() >= deadline) {
      const seconds = Math.round(options.timeoutMs / 1000);
      throw new Error(`${what}: not within ${seconds} s${last === '' ? '' : ` (${last})`}`);
    }
    await sleep(options.intervalMs ?? 100);
  }
}

/** True when the URL answers 200 within two seconds; false on any other answer. */
export async function answers200(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.arrayBuffer();
  return response.status === 200;
}
