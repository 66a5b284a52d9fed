import { setTimeout as sleep } from 'node:timers/promises';
import type { Snapshot } from '../../../domain/order/snapshot.ts';
import type { Log } from '../../../lib/log/log.ts';
import { isDatabaseAway } from '../../../lib/postgres/database.ts';
import { runEvery } from '../../../lib/timing/run-every.ts';
import { FencedError } from '../fencing.ts';
import { LIMITS } from '../limits.ts';
import type { DispatchPartition } from './dispatch-partition.ts';
import type { PositionStore } from './position-store.ts';

export type PositionWriter = ReturnType<typeof createPositionWriter>;

interface PositionWriterDeps {
  readonly store: PositionStore;
  readonly partitions: ReadonlyMap<number, DispatchPartition>;
  readonly log: Log;
  onFenced(partitions: readonly number[]): void;
  /** Next offsets that were written; committed only to show the lag. */
  onWritten(next: ReadonlyMap<number, number>): void;
}

/** Writes how far partitions are settled, and how far single-pill attempts may go. */
export function createPositionWriter(deps: PositionWriterDeps) {
  const flush = createFlush(deps);
  const flushing = runEvery({
    name: 'positions of webhooks',
    everyMs: LIMITS.flushIntervalMs,
    log: deps.log,
    run: () => flush(false),
  });
  return { allowTries: createTryBound(deps.store), flush, close: flushing.close };
}

/**
 * Writes the bound of single-pill attempts ahead of need, so that the log rarely waits for it.
 * @returns resolves once pills before an offset may be attempted singly; throws FencedError, or when
 *   the signal aborts
 */
function createTryBound(store: PositionStore) {
  const extending = new Map<DispatchPartition, Promise<void>>();
  const extend = (partition: number, state: DispatchPartition, below: number) => {
    const ahead = below + LIMITS.triedAhead;
    const done = store
      .allowTries(partition, ahead)
      .then(() => {
        state.triedBelow = Math.max(state.triedBelow, ahead);
      })
      .finally(() => extending.delete(state));
    extending.set(state, done);
    return done;
  };
  return async (
    partition: number,
    state: DispatchPartition,
    below: number,
    signal: AbortSignal,
  ): Promise<void> => {
    if (below + LIMITS.triedAhead / 2 > state.triedBelow && !extending.has(state)) {
      extend(partition, state, below).catch(() => undefined);
    }
    while (below > state.triedBelow) {
      signal.throwIfAborted();
      try {
        await (extending.get(state) ?? extend(partition, state, below));
      } catch (error) {
        if (error instanceof FencedError || !isDatabaseAway(error)) throw error;
        await sleep(200, undefined, { signal });
      }
    }
  };
}

/** @returns writes positions now, and on request the states of symbols */
function createFlush({ store, partitions, onFenced, onWritten }: PositionWriterDeps) {
  const written = new Map<DispatchPartition, number>();
  /** Taken, and written once all pills before them are settled. */
  const snapshots = new Map<DispatchPartition, Snapshot>();
  let snapshotAtMs = performance.now() + LIMITS.snapshotIntervalMs;

  const writeSnapshots = async () => {
    for (const [partition, state] of partitions) {
      const snapshot = snapshots.get(state);
      if (snapshot === undefined || (written.get(state) ?? 0) < snapshot.offset) continue;
      snapshots.delete(state);
      await store.snapshot(partition, snapshot);
    }
  };
  const forgetRevoked = () => {
    const held = new Set(partitions.values());
    for (const state of written.keys()) {
      if (held.has(state)) continue;
      written.delete(state);
      snapshots.delete(state);
    }
  };

  return async (takesSnapshots: boolean): Promise<void> => {
    if (takesSnapshots || performance.now() >= snapshotAtMs) {
      snapshotAtMs = performance.now() + LIMITS.snapshotIntervalMs;
      for (const state of partitions.values()) snapshots.set(state, state.snapshot());
    }
    const moved = new Map<number, number>();
    const states = new Map(partitions);
    for (const [partition, state] of states) {
      const next = state.offsets.nextOffset();
      if (next > (written.get(state) ?? -1)) moved.set(partition, next);
    }
    const lost = await store.advance(moved);
    if (lost.length > 0) onFenced(lost);
    for (const [partition, next] of moved) written.set(states.get(partition)!, next);
    forgetRevoked();
    await writeSnapshots();
    onWritten(moved);
  };
}
