import type { Allowance, MeteredCall, Taken } from './access.ts';
import type { DayWindow } from './standings.ts';

/** A call that waits to be counted. */
export interface WaitingCall {
  readonly call: MeteredCall;
  readonly burst: Allowance;
  readonly resolve: (taken: Taken) => void;
}

/** Calls of one account that share its row, in order of arrival. */
export interface CallLine {
  /** Of the latest call: an account's limit may change. */
  limit: number;
  calls: WaitingCall[];
}

/**
 * Answers a line: the first `granted` calls pass, the others are over the limit.
 * @param used the account's count after all of them
 * @returns the calls that pass
 */
export function dealLine(
  line: CallLine,
  granted: number,
  used: number,
  { windowS, resetS, resetsAt }: DayWindow,
): readonly WaitingCall[] {
  const { calls, limit } = line;
  line.calls = [];
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

/** Answers a line's calls, if they have none yet: they were not counted. @returns how many */
export function refuseLine(line: CallLine): number {
  const { calls } = line;
  line.calls = [];
  for (const { resolve, burst } of calls) resolve({ kind: 'unavailable', burst });
  return calls.length;
}
