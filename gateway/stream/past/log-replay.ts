import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import type { Backlog } from './backlog.ts';
import { createLogCollector, type LogWish, type PillsOf, type Waiting } from './log-collector.ts';
import type { PastReading, Span } from './past.ts';

/** Pills that were read from the log for those who waited, beside what the backlog holds. */
export interface LogPills {
  /** Ascending in each partition; also what others wanted, and some that the backlog has too. */
  readonly byPartition: PillsOf;
  /** First offset of each partition that was not read: the backlog's own start at that moment. */
  readonly until: Offsets;
  /** Says that they are needed. @returns what says that they no longer are; once */
  hold(): () => void;
}

export interface LogReplayLimits {
  /** Pills that one may be given. */
  readonly replayPillsMax: number;
  /** Pills that all readings hold, until the last who needs them has sent them. */
  readonly logReplayPillsMax: number;
}

export interface LogReplayOptions {
  readonly backlog: Pick<Backlog, 'starts' | 'onForget'>;
  readonly limits: LogReplayLimits;
  readonly readLog: PastReading;
}

/** Reads from the log what somebody missed, keeping what is wanted alone. */
export interface LogReplay {
  /** @returns why it cannot be had. Never rejects. */
  read(wish: LogWish): Promise<LogPills | NotRecovered>;
}

/** One who waits, and how it is told. */
interface Asking extends Waiting {
  readonly resolve: (answer: LogPills | NotRecovered) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates the reader. All who come while one reading is under way share the next: the log is read
 * once for them, from the oldest offset that any of them wants up to where the backlog begins. What
 * the backlog forgets meanwhile is caught, so that nothing is missing in between when it ends.
 *
 * Each is answered in a turn of its own, since to pick what one wants costs as much as there are
 * pills; what is returned must be used in that turn.
 */
export function createLogReplay({ backlog, limits, readLog }: LogReplayOptions): LogReplay {
  let held = 0;
  let reading: Promise<unknown> = Promise.resolve();
  let next: Asking[] | undefined;

  const readFor = async (asking: readonly Asking[]): Promise<void> => {
    const enough = new AbortController();
    const starts = backlog.starts;
    /** How many of the held ones are of this reading. */
    let ownHeld = 0;
    const collector = createLogCollector({
      ...{ waiting: asking, starts, replayPillsMax: limits.replayPillsMax },
      room: () => limits.logReplayPillsMax - (held - ownHeld),
    });
    const holdOwn = (count: number) => {
      held += count - ownHeld;
      ownHeld = count;
    };
    const spans = spansOf(asking, starts);
    const stopCatching = backlog.onForget((pill) => {
      if (pill.offset >= (spans.get(pill.partition)?.until ?? 0)) collector.takeForgotten(pill);
    });
    const take = (pill: EffectivePill) => {
      if (!collector.take(pill)) enough.abort();
    };
    try {
      const reason = await readLog(spans, take, enough.signal);
      collector.join();
      const hold = createHold(() => holdOwn(0));
      const release = hold();
      for (const one of asking) {
        holdOwn(collector.count);
        const { pills: byPartition } = collector;
        const refusal = one.refusal ?? reason;
        one.isAnswered = true;
        one.resolve(refusal ?? { byPartition, until: backlog.starts, hold });
        await nextTurn();
      }
      release();
    } finally {
      stopCatching();
    }
  };
  const open = (): Asking[] => {
    const asking: Asking[] = [];
    reading = reading.then(() => {
      next = undefined;
      return readFor(asking).catch((error) => {
        for (const one of asking) one.reject(error);
      });
    });
    return asking;
  };

  return {
    read(wish) {
      next ??= open();
      const asking = next;
      return new Promise((resolve, reject) => {
        asking.push({ wish, refusal: undefined, isAnswered: false, resolve, reject });
      });
    },
  };
}

/** Counts those who need something. @param onFree nobody needs it any more */
function createHold(onFree: () => void): () => () => void {
  let holders = 0;
  return () => {
    holders += 1;
    let isHolding = true;
    return () => {
      if (!isHolding) return;
      isHolding = false;
      holders -= 1;
      if (holders === 0) onFree();
    };
  };
}

function spansOf(waiting: readonly Waiting[], starts: Offsets): ReadonlyMap<number, Span> {
  const spans = new Map<number, Span>();
  for (const { wish } of waiting) {
    for (const [partition, offset] of wish.after) {
      const from = Math.min(offset + 1, spans.get(partition)?.from ?? Number.POSITIVE_INFINITY);
      spans.set(partition, { from, until: starts.get(partition) ?? 0 });
    }
  }
  return spans;
}
