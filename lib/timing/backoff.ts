import { setTimeout as sleep } from 'node:timers/promises';

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Full-jitter exponential back-off: a wait drawn from 0 … min(max, first × 2^attempt)
 * (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog 2015).
 */
export function backoffMs(attempt: number, { firstMs, maxMs }: BackoffOptions): number {
  return Math.random() * Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30));
}

/**
 * Retries until `attempt` succeeds or `signal` aborts. Meant for dependencies that a process cannot
 * work without; `onError` logs why the process waits.
 */
export async function retryForever<T>(
  attempt: () => Promise<T>,
  options: BackoffOptions & {
    readonly signal: AbortSignal;
    readonly onError: (error: Error, attempts: number) => void;
  },
): Promise<T> {
  for (let attempts = 0; ; attempts += 1) {
    options.signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      options.onError(error as Error, attempts + 1);
      const wait = Math.max(options.firstMs / 2, backoffMs(attempts, options));
      await sleep(wait, undefined, { signal: options.signal });
    }
  }
}
