import { createRequire } from 'node:module';

/** The parts of kafkajs's queue of requests, one per connection, that are used here. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  /** Time of the clock until which the broker has asked the client to wait; −1 if it has not. */
  readonly throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  checkPendingRequests(): void;
  scheduleCheckPendingRequests(): void;
}

/** The library's own interval for requests that wait for another one. */
const CHECK_MS = 10;

/**
 * Mends the library's queue of requests (kafkajs 2.2.4, issues 1704 and 1751): without a waiting
 * request it computes a negative time-out, which is a timer of 1 ms without end, so every connection
 * woke its process some 850 times a second. Only a waiting request needs a timer.
 * @throws when another version of the library has no such queue
 */
export function mendRequestQueue(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
    readonly prototype: RequestQueue;
  };
  if (typeof prototype.scheduleCheckPendingRequests !== 'function') {
    throw new Error('This version of kafkajs has another request queue: see request-queue.ts.');
  }
  prototype.scheduleCheckPendingRequests = scheduleCheck;
}

function scheduleCheck(this: RequestQueue): void {
  if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return;
  const throttledMs = this.throttledUntil - Date.now();
  this.throttleCheckTimeoutId = setTimeout(
    () => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    },
    throttledMs > 0 ? throttledMs : CHECK_MS,
  );
}
