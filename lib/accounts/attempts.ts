/** How many attempts of a kind pass, and in how long a window. */
export interface AttemptLimit {
  readonly max: number;
  readonly windowMs: number;
}

/** Names that are remembered; beyond, the one that came first is forgotten. */
const NAMES_MAX = 50_000;

/** Counts attempts by a name, e.g. an address or an address with a user; in this process alone. */
export interface Attempts {
  /** Counts one. @returns 0 when it may go on, else the seconds to wait */
  take(name: string): number;
  /** It was no attack after all. */
  forget(name: string): void;
}

/** Creates a counter with fixed windows that begin at the first attempt. */
export function createAttempts(
  { max, windowMs }: AttemptLimit,
  nowMs: () => number = () => performance.now(),
): Attempts {
  const windows = new Map<string, { count: number; endsMs: number }>();
  return {
    take(name) {
      const now = nowMs();
      let window = windows.get(name);
      if (window === undefined || window.endsMs <= now) {
        windows.delete(name);
        if (windows.size >= NAMES_MAX) windows.delete(windows.keys().next().value!);
        window = { count: 0, endsMs: now + windowMs };
        windows.set(name, window);
      }
      window.count += 1;
      return window.count <= max ? 0 : Math.max(1, Math.ceil((window.endsMs - now) / 1_000));
    },
    forget: (name) => void windows.delete(name),
  };
}
