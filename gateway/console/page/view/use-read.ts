import { useEffect, useState } from 'preact/hooks';

/** After a failure, and in a hidden tab. */
const RETRY_MS = 10_000;

export interface Read<T> {
  /** The last answer; undefined before the first one. */
  readonly value: T | undefined;
  /** When it came, by this machine's clock. */
  readonly atMs: number | undefined;
  /** Why the last attempt failed. */
  readonly fault: Error | undefined;
}

const NOTHING = { value: undefined, atMs: undefined, fault: undefined };

/**
 * Reads a value, and reads it again.
 * @param key another key is another value; undefined: nothing to read yet
 * @param afterMs when to read again
 * @param isFinal whether the same read would fail again, so that only another key is read
 */
export function useRead<T>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<T>,
  afterMs: (value: T) => number,
  isFinal: (fault: Error) => boolean = () => false,
): Read<T> {
  const [state, setState] = useState<Read<T> & { readonly key: string | undefined }>({
    key,
    ...NOTHING,
  });
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      let waitMs: number | undefined = RETRY_MS;
      try {
        if (!document.hidden) {
          const value = await read(stop.signal);
          if (stop.signal.aborted) return;
          waitMs = afterMs(value);
          setState({ key, value, atMs: Date.now(), fault: undefined });
        }
      } catch (error) {
        const fault = error as Error;
        if (isFinal(fault)) waitMs = undefined;
        if (!stop.signal.aborted) {
          setState((last) => ({ ...(last.key === key ? last : NOTHING), key, fault }));
        }
      }
      if (!stop.signal.aborted && waitMs !== undefined) timer = setTimeout(load, waitMs);
    };
    if (key !== undefined) void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return state.key === key ? state : NOTHING;
}
