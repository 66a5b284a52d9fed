import { useCallback, useEffect, useState } from 'preact/hooks';
import { asFailure, type RequestFailed } from '../session/problem.ts';
import { useSession } from '../session/session-context.tsx';

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
  const reload = useCallback(() => {
    let isCurrent = true;
    setFailure(undefined);
    client.send<T>('GET', path).then(
      (read) => isCurrent && setData(read),
      (error) => isCurrent && setFailure(asFailure(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, path]);
  useEffect(reload, [reload]);
  return { data, failure, reload };
}
