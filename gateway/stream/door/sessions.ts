import type { Connection } from '../live/connection.ts';
import { relieve } from './relief.ts';

/** All connections of the process, and the clock of their heartbeats. */
export interface Sessions {
  add(connection: Connection): void;
  remove(connection: Connection): void;
  all(): Iterable<Connection>;
  readonly count: number;
  /** Sends the heartbeats that are due, and holds what waits over all below its bound. */
  tick(nowMs: number): void;
}

/** Heartbeats are spread over slots, so that thousands of them never fall into one moment. */
export const HEARTBEAT_SLOT_MS = 100;

/**
 * Creates the list. One wheel instead of a timer per connection: each stands in a slot, and the
 * wheel turns once in less than `heartbeatMs`, a slot spared for a late timer.
 * @param beforeBeats run once before the heartbeats of a tick
 */
export function createSessions(options: {
  readonly heartbeatMs: number;
  readonly startMs: number;
  readonly beforeBeats: () => void;
  /** What may wait over all connections. */
  readonly queueBytesMax: number;
}): Sessions {
  const slotCount = Math.max(1, Math.floor(options.heartbeatMs / HEARTBEAT_SLOT_MS) - 2);
  const slots = Array.from({ length: slotCount }, () => new Set<Connection>());
  const slotOf = new Map<Connection, Set<Connection>>();
  let nextSlot = 0;
  let turned = 0;
  return {
    get count() {
      return slotOf.size;
    },
    add(connection) {
      const slot = slots[nextSlot % slotCount]!;
      nextSlot += 1;
      slot.add(connection);
      slotOf.set(connection, slot);
    },
    remove(connection) {
      slotOf.get(connection)?.delete(connection);
      slotOf.delete(connection);
    },
    all: () => slotOf.keys(),
    tick(nowMs) {
      const until = Math.floor((nowMs - options.startMs) / HEARTBEAT_SLOT_MS);
      // After a stall each slot is due once, however long it was.
      const from = Math.max(turned, until - slotCount);
      turned = until;
      let begun = false;
      for (let slot = from; slot < until; slot += 1) {
        const due = slots[slot % slotCount]!;
        if (due.size > 0 && !begun) {
          options.beforeBeats();
          begun = true;
        }
        for (const connection of [...due]) connection.beat();
      }
      if (until > from) relieve(slotOf.keys(), options.queueBytesMax);
    },
  };
}
