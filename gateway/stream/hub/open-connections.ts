import { shedLoad } from './load-shedding.ts';
import type { Connection } from './stream-connection.ts';

/** Heartbeats are spread over slots, so that thousands never fall on the same moment. */
export const HEARTBEAT_SLOT_MS = 100;

/**
 * Creates the list of all connections, and the clock of their heartbeats. A timer wheel replaces a
 * timer per connection: each connection has a slot, and the wheel turns once in less than
 * `heartbeatMs`, with one slot to spare for a late timer.
 * @param beforeBeats called once before the heartbeats of a tick
 */
export function createConnections(options: {
  readonly heartbeatMs: number;
  readonly startMs: number;
  readonly beforeBeats: () => void;
  /** Bound on the queues of all connections together. */
  readonly queueBytesMax: number;
}) {
  const slotCount = Math.max(1, Math.floor(options.heartbeatMs / HEARTBEAT_SLOT_MS) - 2);
  const slots = Array.from({ length: slotCount }, () => new Set<Connection>());
  const slotOf = new Map<Connection, Set<Connection>>();
  let nextSlot = 0;
  let turned = 0;
  return {
    get count() {
      return slotOf.size;
    },
    add(connection: Connection) {
      const slot = slots[nextSlot % slotCount]!;
      nextSlot += 1;
      slot.add(connection);
      slotOf.set(connection, slot);
    },
    remove(connection: Connection) {
      slotOf.get(connection)?.delete(connection);
      slotOf.delete(connection);
    },
    all: (): Iterable<Connection> => slotOf.keys(),
    /** Sends the heartbeats that are due, and keeps the total of all queues within its bound. */
    tick(nowMs: number) {
      const until = Math.floor((nowMs - options.startMs) / HEARTBEAT_SLOT_MS);
      // After a stall each slot is due once, however long the stall was.
      const from = Math.max(turned, until - slotCount);
      turned = until;
      let begun = false;
      for (let slot = from; slot < until; slot += 1) {
        const due = slots[slot % slotCount]!;
        if (due.size > 0 && !begun) {
          options.beforeBeats();
          begun = true;
        }
        for (const connection of [...due]) connection.sendHeartbeat();
      }
      if (until > from) shedLoad(slotOf.keys(), options.queueBytesMax);
    },
  };
}
