import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import type { Backlog } from './backlog.ts';
import type { PastReading, Span } from './past.ts';

/** Puts what came before the start into memory, while there is room for it. */
export interface Refill {
  /** Whether all after these offsets has room, beside what others wait for. */
  hasRoom(after: Offsets): boolean;
  /** @returns why the log cannot be read; else the backlog may hold it now. Never rejects. */
  fill(after: Offsets): Promise<NotRecovered | undefined>;
}

/**
 * Creates it. A process that has just started, with all clients of its predecessor, reads the log
 * once: those who come while one reading is under way share the next.
 */
export function createRefill(backlog: Backlog, readLog: PastReading): Refill {
  let reading: Promise<NotRecovered | undefined> | undefined;
  let next: Promise<NotRecovered | undefined> | undefined;
  /** First offset of each partition that somebody waits for. */
  let wanted = new Map<number, number>();

  const merged = (after: Offsets) => {
    const from = new Map(wanted);
    for (const [partition, offset] of after) {
      const first = offset + 1;
      if (first >= (backlog.startOf(partition) ?? 0)) continue;
      from.set(partition, Math.min(first, from.get(partition) ?? first));
    }
    return from;
  };
  const spansFrom = (from: Offsets) => {
    const spans = new Map<number, Span>();
    for (const [partition, until] of backlog.starts) {
      const first = from.get(partition) ?? until;
      if (first < until) spans.set(partition, { from: first, until });
    }
    return spans;
  };
  const fits = (from: Offsets) => {
    let records = 0;
    for (const span of spansFrom(from).values()) records += span.until - span.from;
    return records <= backlog.room;
  };
  const readWanted = async (): Promise<NotRecovered | undefined> => {
    const from = wanted;
    wanted = new Map();
    if (!fits(from)) return undefined; // live pills have taken the room meanwhile
    const spans = spansFrom(from);
    const found = new Map<number, EffectivePill[]>();
    const reason = await readLog(spans, (pill) => {
      const run = found.get(pill.partition);
      if (run === undefined) found.set(pill.partition, [pill]);
      else run.push(pill);
    });
    if (reason !== undefined) return reason;
    for (const [partition, { from, until }] of spans) {
      // A partition whose start has moved meanwhile has forgotten pills in between.
      if (backlog.startOf(partition) === until) {
        backlog.prepend(partition, from, found.get(partition) ?? []);
      }
    }
    return undefined;
  };
  return {
    hasRoom: (after) => fits(merged(after)),
    fill(after) {
      wanted = merged(after);
      next ??= (reading ?? Promise.resolve()).then(() => {
        reading = next;
        next = undefined;
        return readWanted();
      });
      return next;
    },
  };
}
