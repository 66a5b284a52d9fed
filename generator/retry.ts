import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '../lib/backoff.ts';
import type { NotOk, RetryPolicy, SendResult } from './sender.ts';

/** What one try made of its rows; `retry` lists those to send again. */
export interface Attempt<R> {
  readonly ok: number;
  readonly replayed: number;
  readonly refused: readonly NotOk[];
  readonly retry: readonly R[];
  readonly reason: string;
  /** The server asked for at least this wait. */
  readonly retryAfterMs: number;
}

/** Repeats `attempt` with the rows that are left, until none is, or the policy ends it. */
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
    // An abort ends the wait; the rows get one last try, so that a stop seldom leaves a doubt.
    await sleep(waitMs, undefined, { signal: policy.signal }).catch(() => undefined);
  }
}
