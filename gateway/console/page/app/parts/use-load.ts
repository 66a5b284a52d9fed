import { useCallback, useEffect, useState } from 'preact/hooks';
import type { Client } from '../session/client.ts';
import { asFailure, type RequestFailed } from '../session/problem.ts';
import { useSession } from '../session/session-context.tsx';

/** A read that failed for a reason that may pass is repeated by itself. */
const AGAIN_MS = 5_000;

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly failure: RequestFailed | undefined;
  reload(): void;
}

/**
 * Reads a path of the API; earlier data of the same path stays while it is read again.
 * @param path undefined: nothing to read yet
 * @param everyMs reads it again after this time, while the page is visible
 */
export function useLoad<T>(path: string | undefined, everyMs?: number): Loaded<T> {
  return useLoadBy(path, (client) => client.send<T>('GET', path!), everyMs);
}

/** The same for data that takes several requests. @param path another one is other data */
export function useLoadBy<T>(
  path: string | undefined,
  load: (client: Client) => Promise<T>,
  everyMs?: number,
): Loaded<T> {
  const { client } = useSession();
  const [read, setRead] = useState<{ readonly path: string; readonly data: T }>();
  const [failure, setFailure] = useState<RequestFailed>();
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  useEffect(() => {
    if (path === undefined) return;
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (afterMs: number) => {
      timer = setTimeout(() => (document.hidden ? again(afterMs) : reload()), afterMs);
    };
    load(client).then(
      (data) => {
        if (!isCurrent) return;
        setRead({ path, data });
        setFailure(undefined);
        if (everyMs !== undefined) again(everyMs);
      },
      (error) => {
        if (!isCurrent) return;
        const failed = asFailure(error);
        setFailure(failed);
        if (failed.mayPass) again(AGAIN_MS);
      },
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [client, path, everyMs, round, reload]);
  const data = read?.path === path ? read?.data : undefined;
  return { data, failure, reload };
}
