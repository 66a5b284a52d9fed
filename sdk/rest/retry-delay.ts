/**
 * Full-jitter exponential back-off: ms drawn from 0 … min(max, first × 2^attempt)
 * (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog 2015).
 */
export function retryDelayMs(attempt: number, firstMs: number, maxMs: number): number {
  return Math.random() * Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30));
}

/** Waits for `ms`. Ends early, without an error, when `signal` aborts. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}
