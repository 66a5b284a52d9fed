import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../lib/log.ts';
import { isDatabaseAway } from '../../lib/postgres/database.ts';
import { type Repetition, repeat } from '../../lib/repeat.ts';
import { LIMITS } from './limits.ts';
import type { WebhookPartition } from './partition.ts';
import { FencedError, type Snapshot, type WebhookStore } from './store.ts';

/** Writes how far partitions are, and what must be written before pills may be tried. */
export interface Positions {
  /**
   * Resolves once pills before this offset may be attempted by themselves. @throws FencedError, or
   * when the signal aborts
   */
  allowTries(
    partition: number,
    state: WebhookPartition,
    below: number,
    signal: AbortSignal,
  ): Promise<void>;
  /** Writes positions now, and the states of symbols. */
  flush(snapshots: boolean): Promise<void>;
  close(): Promise<void>;
}

export interface PositionsParts {
  readonly store: WebhookStore;
  readonly partitions: ReadonlyMap<number, WebhookPartition>;
  readonly log: Log;
  onFenced(partitions: readonly number[]): void;
  /** Next offsets that were written, for the eyes of operators. */
  onWritten(next: ReadonlyMap<number, number>): void;
}

export function createPositions(parts: PositionsParts): Positions {
  const { store, partitions, log } = parts;
  const written = new Map<WebhookPartition, number>();
  /** Taken, and written once all before them is settled. */
  const snapshots = new Map<WebhookPartition, Snapshot>();
  const extending = new Map<WebhookPartition, Promise<void>>();
  let snapshotAtMs = performance.now() + LIMITS.snapshotIntervalMs;

  const extend = (partition: number, state: WebhookPartition, below: number) => {
    const ahead = below + LIMITS.triedAhead;
    const going = store.allowTries(partition, ahead).then(() => {
      state.triedBelow = Math.max(state.triedBelow, ahead);
    });
    const done = going.finally(() => extending.delete(state));
    extending.set(state, done);
    return done;
  };

  const writeSnapshots = async () => {
    for (const [partition, state] of partitions) {
      const snapshot = snapshots.get(state);
      if (snapshot === undefined || (written.get(state) ?? 0) < snapshot.offset) continue;
      snapshots.delete(state);
      await store.snapshot(partition, snapshot);
    }
  };

  const flush = async (takesSnapshots: boolean) => {
    if (takesSnapshots || performance.now() >= snapshotAtMs) {
      snapshotAtMs = performance.now() + LIMITS.snapshotIntervalMs;
      for (const state of partitions.values()) snapshots.set(state, state.snapshot());
    }
    const moved = new Map<number, number>();
    const states = new Map(partitions);
    for (const [partition, state] of states) {
      const next = state.frontier.next();
      if (next > (written.get(state) ?? -1)) moved.set(partition, next);
    }
    const lost = await store.advance(moved);
    if (lost.length > 0) parts.onFenced(lost);
    for (const [partition, next] of moved) written.set(states.get(partition)!, next);
    const held = new Set(partitions.values());
    for (const state of written.keys()) {
      if (held.has(state)) continue;
      written.delete(state);
      snapshots.delete(state);
    }
    await writeSnapshots();
    parts.onWritten(moved);
  };

  const flushing: Repetition = repeat({
    ...{ name: 'positions of webhooks', everyMs: LIMITS.flushIntervalMs, log },
    run: () => flush(false),
  });
  return {
    async allowTries(partition, state, below, signal) {
      // Ahead of need: then nobody waits for it.
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
    },
    flush,
    close: flushing.close,
  };
}
