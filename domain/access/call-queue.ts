import type { Allowance, LimitOwner, MeteredCall, MeterVerdict } from './account-access.ts';
import type { DayWindow } from './daily-usage-cache.ts';

/** A call that waits for its count. */
export interface WaitingCall {
  readonly call: MeteredCall;
  readonly burst: Allowance;
  readonly resolve: (taken: MeterVerdict) => void;
}

/** Waiting calls of one account and desk, in order of arrival. */
export interface CallQueue {
  /** The limits of the latest call, which may change; undefined = none. */
  limit: number | undefined;
  deskLimit: number | undefined;
  calls: WaitingCall[];
}

/** The limit that a queue reaches first, and its count after these calls. */
export interface ReachedLimit {
  readonly of: LimitOwner;
  readonly limit: number;
  readonly used: number;
}

/**
 * Answers all calls of a queue: the first `granted` pass, the others are over the limit.
 * @returns the calls that passed
 */
export function answerCalls(
  queue: CallQueue,
  granted: number,
  { of, limit, used }: ReachedLimit,
  { windowS, resetS, resetsAt }: DayWindow,
): readonly WaitingCall[] {
  const { calls } = queue;
  queue.calls = [];
  for (let i = 0; i < calls.length; i += 1) {
    const { burst, resolve } = calls[i]!;
    if (i < granted) {
      const remaining = Math.max(0, limit - used + granted - i - 1);
      resolve({ kind: 'granted', burst, daily: { limit, remaining, windowS, resetS } });
    } else {
      const daily = { limit, remaining: 0, windowS, resetS };
      resolve({ kind: 'quota_exceeded', of, burst, daily, used, resetsAt });
    }
  }
  return granted < calls.length ? calls.slice(0, granted) : calls;
}

/** Answers the calls that are still waiting as not counted. @returns how many */
export function refuseCalls(queue: CallQueue): number {
  const { calls } = queue;
  queue.calls = [];
  for (const { resolve, burst } of calls) resolve({ kind: 'unavailable', burst });
  return calls.length;
}
