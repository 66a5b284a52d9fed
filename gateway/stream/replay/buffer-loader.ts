import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { ReplayBuffer } from '../log/replay-buffer.ts';
import type { ReadSpans, Span } from '../log/span-reader.ts';
import type { ResumeReason } from '../protocol/resume-reasons.ts';

/**
 * Creates the loader that extends the replay buffer backwards from the log while it has room. After
 * a start, when all clients of the previous process resume, it reads the log once: requests that
 * arrive during a reading share the next one.
 */
export function createBufferLoader(replayBuffer: ReplayBuffer, readSpans: ReadSpans) {
  let reading: Promise<ResumeReason | undefined> | undefined;
  let next: Promise<ResumeReason | undefined> | undefined;
  /** First requested offset of each partition. */
  let requested = new Map<number, number>();

  const merged = (after: Offsets) => {
    const from = new Map(requested);
    for (const [partition, offset] of after) {
      const first = offset + 1;
      if (first >= (replayBuffer.startOf(partition) ?? 0)) continue;
      from.set(partition, Math.min(first, from.get(partition) ?? first));
    }
    return from;
  };
  const spansFrom = (from: Offsets) => {
    const spans = new Map<number, Span>();
    for (const [partition, until] of replayBuffer.starts) {
      const first = from.get(partition) ?? until;
      if (first < until) spans.set(partition, { from: first, until });
    }
    return spans;
  };
  const fits = (from: Offsets) => {
    let records = 0;
    for (const span of spansFrom(from).values()) records += span.until - span.from;
    return records <= replayBuffer.room;
  };
  const readRequested = async (): Promise<ResumeReason | undefined> => {
    const from = requested;
    requested = new Map();
    if (!fits(from)) return undefined; // live pills have taken the room meanwhile
    const spans = spansFrom(from);
    const found = new Map<number, EffectivePill[]>();
    const reason = await readSpans(spans, (pill) => {
      const run = found.get(pill.partition);
      if (run === undefined) found.set(pill.partition, [pill]);
      else run.push(pill);
    });
    if (reason !== undefined) return reason;
    for (const [partition, { from, until }] of spans) {
      // If the start has moved meanwhile, the buffer has evicted pills in between.
      if (replayBuffer.startOf(partition) === until) {
        replayBuffer.prepend(partition, from, found.get(partition) ?? []);
      }
    }
    return undefined;
  };
  return {
    /** Whether all pills after these offsets fit, besides those already requested. */
    hasRoom: (after: Offsets) => fits(merged(after)),
    /** @returns why the log cannot be read; otherwise the buffer may hold the pills. Never rejects. */
    load(after: Offsets): Promise<ResumeReason | undefined> {
      requested = merged(after);
      next ??= (reading ?? Promise.resolve()).then(() => {
        reading = next;
        next = undefined;
        return readRequested();
      });
      return next;
    },
  };
}
