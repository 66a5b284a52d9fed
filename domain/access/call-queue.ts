import type { Allowance, MeteredCall, MeterVerdict } from './account-access.ts';
import type { DayWindow } from './daily-usage-cache.ts';

/** A call that waits for its count. */
export interface WaitingCall {
  readonly call: MeteredCall;
  readonly burst: Allowance;
  readonly resolve: (taken: MeterVerdict) => void;
}

/** Waiting calls of one account, in order of arrival. */
export interface CallQueue {
  /** The limit of the latest call: an account's limit may change. */
  limit: number;
  calls: WaitingCall[];
}

/**
 * Answers all calls of a queue: the first `granted` pass, the others are over the limit.
 * @param used the account's count after these calls
 * @returns the calls that passed
 */
export function answerCalls(
  queue: CallQueue,
  granted: number,
  used: number,
  { windowS, resetS, resetsAt }: DayWindow,
): readonly WaitingCall[] {
  const { calls, limit } = queue;
  queue.calls = [];
  for (let i = 0; i < calls.length; i += 1) {
    const { burst, resolve } = calls[i]!;
    if (i < granted) {
      const remaining = Math.max(0, limit - used + granted - i - 1);
      resolve({ kind: 'granted', burst, daily: { limit, remaining, windowS, resetS } });
    } else {
      const daily = { limit, remaining: 0, windowS, resetS };
      resolve({ kind: 'quota_exceeded', burst, daily, used, resetsAt });
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
