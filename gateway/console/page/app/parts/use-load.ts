import { useCallback, useEffect, useState } from 'preact/hooks';
import { asFailure, type RequestFailed } from '../session/problem.ts';
import { useSession } from '../session/session-context.tsx';

/** A read that failed for a reason that may pass is repeated by itself. */
const AGAIN_MS = 5_000;

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly failure: RequestFailed | undefined;
  reload(): void;
}

/** Reads a path of the API; earlier data stays while it is read again. */
export function useLoad<T>(path: string): Loaded<T> {
  const { client } = useSession();
  const [data, setData] = useState<T>();
  const [failure, setFailure] = useState<RequestFailed>();
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  useEffect(() => {
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    client.send<T>('GET', path).then(
      (read) => {
        if (!isCurrent) return;
        setData(read);
        setFailure(undefined);
      },
      (error) => {
        if (!isCurrent) return;
        const failed = asFailure(error);
        setFailure(failed);
        if (failed.mayPass) timer = setTimeout(reload, AGAIN_MS);
      },
    );
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [client, path, round, reload]);
  return { data, failure, reload };
}
