import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '../lib/timing/backoff.ts';
import type { NotOk, RetryPolicy, SendResult } from './sender.ts';

/** Outcome of one attempt; `retry` lists the rows to send again. */
export interface Attempt<R> {
  readonly ok: number;
  readonly replayed: number;
  readonly refused: readonly NotOk[];
  readonly retry: readonly R[];
  readonly reason: string;
  /** Minimum wait requested by the server. */
  readonly retryAfterMs: number;
}

export const NO_EFFECT = {
  ok: 0,
  replayed: 0,
  refused: [],
  retry: [],
  reason: '',
  retryAfterMs: 0,
};

/** Repeats `attempt` with the remaining rows until none is left, or the policy ends the retries. */
export async function sendWithRetries<R extends { readonly index: number }>(
  rows: readonly R[],
  policy: RetryPolicy,
  attempt: (rows: readonly R[]) => Promise<Attempt<R>>,
): Promise<SendResult> {
  let ok = 0;
  let replayed = 0;
  let left = rows;
  const refused: NotOk[] = [];
  for (let tries = 1; ; tries += 1) {
    const made = await attempt(left);
    ok += made.ok;
    replayed += made.replayed;
    refused.push(...made.refused);
    left = made.retry;
    const isLast = tries >= policy.triesMax || policy.signal.aborted;
    if (left.length === 0 || isLast) {
      const unknown = left.map(({ index }) => ({ index, reason: made.reason }));
      return { ok, replayed, refused, unknown };
    }
    const waitMs = Math.max(made.retryAfterMs, backoffMs(tries - 1, policy));
    policy.onRetry?.(made.reason, tries, waitMs);
    // An abort ends the wait; one last attempt follows, so that few rows stay unknown at a stop.
    await sleep(waitMs, undefined, { signal: policy.signal }).catch(() => undefined);
  }
}
