import { useEffect, useState } from 'preact/hooks';

/** After a failure, and in a hidden tab. */
const RETRY_MS = 10_000;

export interface Read<T> {
  /** The last answer; undefined before the first one. */
  readonly value: T | undefined;
  /** Why the last attempt failed. */
  readonly fault: string | undefined;
}

const NOTHING = { value: undefined, fault: undefined };

/**
 * Reads a value, and reads it again.
 * @param key another key is another value; undefined: nothing to read yet
 * @param afterMs when to read again
 */
export function useRead<T>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<T>,
  afterMs: (value: T) => number,
): Read<T> {
  const [state, setState] = useState<Read<T> & { readonly key: string | undefined }>({
    key,
    ...NOTHING,
  });
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      let waitMs = RETRY_MS;
      try {
        if (!document.hidden) {
          const value = await read(stop.signal);
          waitMs = afterMs(value);
          setState({ key, value, fault: undefined });
        }
      } catch (error) {
        const fault = (error as Error).message;
        if (!stop.signal.aborted) {
          setState((last) => ({ key, value: last.key === key ? last.value : undefined, fault }));
        }
      }
      if (!stop.signal.aborted) timer = setTimeout(load, waitMs);
    };
    if (key !== undefined) void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return state.key === key ? state : NOTHING;
}
