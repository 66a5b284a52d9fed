export interface Scheduled {
  /** Whether it is in a bucket, or waits to be judged. */
  armed: boolean;
}

/** If the clock has moved by more seconds than this, the buckets are searched instead. */
const STEPS_MAX = 3_600;

/** Creates the schedule of checks: buckets of one second each, and the checks that are due. */
export function createCheckSchedule<T extends Scheduled>() {
  const buckets = new Map<number, T[]>();
  const waiting: T[] = [];
  let lastS = Number.NEGATIVE_INFINITY;

  const moveDue = (nowMs: number) => {
    const nowS = Math.floor(nowMs / 1000);
    // After the clock was set back, everything is checked.
    if (nowS < lastS) lastS = Number.NEGATIVE_INFINITY;
    const move = (second: number) => {
      const bucket = buckets.get(second);
      if (bucket === undefined) return;
      buckets.delete(second);
      for (const one of bucket) waiting.push(one);
    };
    const isAll = lastS === Number.NEGATIVE_INFINITY;
    if (nowS - lastS > STEPS_MAX) {
      for (const second of [...buckets.keys()]) if (isAll || second <= nowS) move(second);
    } else for (let second = lastS + 1; second <= nowS; second += 1) move(second);
    lastS = nowS;
  };

  return {
    /** Schedules a check, unless one is scheduled already. */
    arm(one: T, atMs: number): void {
      if (one.armed) return;
      one.armed = true;
      const second = Math.max(Math.ceil(atMs / 1000), lastS + 1);
      const bucket = buckets.get(second);
      if (bucket === undefined) buckets.set(second, [one]);
      else bucket.push(one);
    },
    /** Makes a check due now, unless one is scheduled already. */
    wake(one: T): void {
      if (one.armed) return;
      one.armed = true;
      waiting.push(one);
    },
    /** Takes up to `max` of the checks that are due. */
    takeDue(nowMs: number, max: number): T[] {
      moveDue(nowMs);
      const taken = waiting.splice(0, max);
      for (const one of taken) one.armed = false;
      return taken;
    },
    /** The number of checks that are due and not yet taken. */
    waiting: () => waiting.length,
  };
}
