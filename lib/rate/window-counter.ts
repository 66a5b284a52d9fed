const SLOTS = 10;

/**
 * Counts events within a window that slides in ten slots: events leave the window a tenth of its length
 * at a time.
 */
export function createSlidingCounter(windowMs: number) {
  const slotMs = windowMs / SLOTS;
  const counts = new Array<number>(SLOTS).fill(0);
  let slot = 0;
  let total = 0;
  /** Empties the slots that have left the window. @returns the index of the one that counts now */
  const advance = (nowMs: number) => {
    const now = Math.floor(nowMs / slotMs);
    for (let left = Math.min(now - slot, SLOTS); left > 0; left -= 1) {
      const at = (now - left + 1) % SLOTS;
      total -= counts[at]!;
      counts[at] = 0;
    }
    slot = now;
    return now % SLOTS;
  };
  return {
    add(nowMs: number, events = 1) {
      counts[advance(nowMs)]! += events;
      total += events;
    },
    /** Events within the window that ends now, to the precision of a slot. */
    count(nowMs: number): number {
      advance(nowMs);
      return total;
    },
  };
}

/**
 * Measures events per second over the last whole window, for a rate that is read far more often than it
 * changes. Each window begins where the previous one ended. @param nowMs when the first one begins
 */
export function createRateMeter(windowMs: number, nowMs: number) {
  let beganMs = nowMs;
  let events = 0;
  let last = 0;
  const roll = (now: number) => {
    const elapsedMs = now - beganMs;
    if (elapsedMs < windowMs) return;
    last = (events * 1_000) / elapsedMs;
    events = 0;
    beganMs = now;
  };
  return {
    add(now: number, more: number) {
      roll(now);
      events += more;
    },
    /** 0 during the first window. */
    perS(now: number): number {
      roll(now);
      return last;
    },
  };
}

/** The number of events of one kind that are allowed within a window. */
export interface WindowLimit {
  readonly max: number;
  readonly windowMs: number;
}

export type KeyedCounter = ReturnType<typeof createKeyedCounter>;

const KEYS_MAX = 50_000;

/**
 * Counts by key, e.g. an address or an account, in windows that begin at a key's first event; in
 * this process only. @param keysMax beyond this number, the key whose window began first is evicted
 */
export function createKeyedCounter(
  { max, windowMs }: WindowLimit,
  nowMs: () => number = () => performance.now(),
  keysMax = KEYS_MAX,
) {
  /** All windows are equally long, so the one that began first ends first. */
  const windows = new Map<string, { count: number; endsMs: number }>();
  const makeRoom = (now: number) => {
    for (const [key, { endsMs }] of windows) {
      if (endsMs > now && windows.size < keysMax) return;
      windows.delete(key);
    }
  };
  return {
    /** Counts an event. @returns 0 if the event is allowed, else the seconds to wait, ≥ 1 */
    take(key: string): number {
      const now = nowMs();
      let window = windows.get(key);
      if (window === undefined || window.endsMs <= now) {
        windows.delete(key);
        makeRoom(now);
        window = { count: 0, endsMs: now + windowMs };
        windows.set(key, window);
      }
      window.count += 1;
      return window.count <= max ? 0 : Math.max(1, Math.ceil((window.endsMs - now) / 1_000));
    },
    /** Takes back one event that should not have counted. */
    giveBack(key: string): void {
      const window = windows.get(key);
      if (window !== undefined) window.count -= 1;
    },
    /** Takes back all events of a key. */
    forget: (key: string) => void windows.delete(key),
    /** Number of keys that are remembered. */
    get size() {
      return windows.size;
    },
  };
}
