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
  return (
    <WhenAllLoaded of={[loaded]} rows={rows}>
      {([data]) => children(data)}
    </WhenAllLoaded>
  );
}

/** The same for several reads that are shown together; the first failure is shown. */
export function WhenAllLoaded<const T extends readonly unknown[]>(props: {
  readonly of: { readonly [Place in keyof T]: Loaded<T[Place]> };
  readonly rows: number;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { of: all, rows, children } = props;
  const reads = all as readonly Loaded<unknown>[];
  const failed = reads.find(({ failure }) => failure !== undefined);
  const isThere = reads.every(({ data }) => data !== undefined);
  // What is there stays while the platform does not answer; the notice above says so once.
  const isSaid = isThere && failed?.failure?.code === 'unreachable';
  return (
    <>
      {failed?.failure !== undefined && !isSaid && (
        <Failure failure={failed.failure} onRetry={failed.reload} />
      )}
      {!isThere && failed === undefined && <Skeleton rows={rows} />}
      {isThere && children(reads.map(({ data }) => data) as unknown as T)}
    </>
  );
}
