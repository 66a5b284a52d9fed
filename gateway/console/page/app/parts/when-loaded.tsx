import type { ComponentChildren } from 'preact';
import { Failure, Skeleton } from './states.tsx';
import type { Loaded } from './use-load.ts';

/** What was read, or what stands for it until then. @param props.rows about its height */
export function WhenLoaded<T>(props: {
  readonly of: Loaded<T>;
  readonly rows: number;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { of: loaded, rows, children } = props;
  const { data, failure, reload } = loaded;
  return (
    <>
      {failure !== undefined && <Failure failure={failure} onRetry={reload} />}
      {data === undefined && failure === undefined && <Skeleton rows={rows} />}
      {data !== undefined && children(data)}
    </>
  );
}
