import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import { EVERY_SYMBOL } from '../live/subscription.ts';
import type { Backlog } from './backlog.ts';
import type { PastReading, Span } from './past.ts';

/** What somebody wants of the part of the log that memory has forgotten. */
export interface LogWish {
  /** Last offset of each partition that it has; every partition is named. */
  readonly after: Offsets;
  /** `*` or names: what can match at all. */
  readonly symbols: readonly string[];
  readonly matches: (pill: EffectivePill) => boolean;
}

/** Pills that were read from the log for those who waited, beside what the backlog holds. */
export interface LogPills {
  /** Ascending in each partition; also what others wanted, and some that the backlog has too. */
  readonly byPartition: ReadonlyMap<number, readonly EffectivePill[]>;
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

/** One who waits for a reading. */
interface Waiting {
  readonly wish: LogWish;
  found: number;
  refusal: NotRecovered | undefined;
}

/**
 * Creates the reader. All who come while one reading is under way share the next: the log is read
 * once for them, from the oldest offset that any of them wants up to where the backlog begins. What
 * the backlog forgets meanwhile is caught, so that nothing is missing in between when it ends; what
 * is returned must be used in that turn.
 */
export function createLogReplay({ backlog, limits, readLog }: LogReplayOptions): LogReplay {
  let held = 0;
  let reading: Promise<unknown> = Promise.resolve();
  let next: { readonly waiting: Waiting[]; readonly done: Promise<LogPills | NotRecovered> };
  let isNextOpen = false;

  const readFor = async (waiting: readonly Waiting[]): Promise<LogPills | NotRecovered> => {
    const enough = new AbortController();
    const collector = createCollector(waiting, limits, () => limits.logReplayPillsMax - held);
    const spans = spansOf(waiting, backlog.starts);
    const takeInto = (pills: PillsOf) => (pill: EffectivePill) => {
      if (!collector.take(pill, pills)) enough.abort();
    };
    const takeForgotten = takeInto(collector.forgotten);
    const stopCatching = backlog.onForget((pill) => {
      if (pill.offset >= (spans.get(pill.partition)?.until ?? 0)) takeForgotten(pill);
    });
    const reason = await readLog(spans, takeInto(collector.read), enough.signal);
    stopCatching();
    if (reason !== undefined) return reason;
    const byPartition = collector.joined();
    let count = 0;
    for (const pills of byPartition.values()) count += pills.length;
    const hold = createHold(count, (change) => {
      held += change;
    });
    setImmediate(hold()); // by then those who waited have said whether they need them
    return { byPartition, until: backlog.starts, hold };
  };
  const open = () => {
    const waiting: Waiting[] = [];
    const done = reading.then(() => {
      isNextOpen = false;
      return readFor(waiting);
    });
    reading = done.catch(() => undefined);
    isNextOpen = true;
    return { waiting, done };
  };

  return {
    async read(wish) {
      const one: Waiting = { wish, found: 0, refusal: undefined };
      if (!isNextOpen) next = open();
      next.waiting.push(one);
      const pills = await next.done;
      return one.refusal ?? pills;
    },
  };
}

/** Counts pills while anybody needs them. */
function createHold(count: number, onChange: (change: number) => void): () => () => void {
  let holders = 0;
  return () => {
    holders += 1;
    if (holders === 1) onChange(count);
    let isHolding = true;
    return () => {
      if (!isHolding) return;
      isHolding = false;
      holders -= 1;
      if (holders === 0) onChange(-count);
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

/** Pills by partition. */
type PillsOf = Map<number, EffectivePill[]>;

/**
 * Keeps what somebody wants. Who wants more than one may have is refused alone; where all together
 * want more than there is room for, the one who wants most is, until the others have room.
 */
function createCollector(
  waiting: readonly Waiting[],
  { replayPillsMax }: LogReplayLimits,
  room: () => number,
) {
  const read: PillsOf = new Map();
  const forgotten: PillsOf = new Map();
  const everything: Waiting[] = [];
  const bySymbol = new Map<string, Waiting[]>();
  let left = waiting.length;
  let count = 0;
  for (const one of waiting) {
    if (one.wish.symbols.includes(EVERY_SYMBOL)) everything.push(one);
    else {
      for (const symbol of one.wish.symbols) {
        const own = bySymbol.get(symbol);
        if (own === undefined) bySymbol.set(symbol, [one]);
        else own.push(one);
      }
    }
  }
  const isWantedBy = ({ wish, refusal }: Waiting, pill: EffectivePill) =>
    refusal === undefined &&
    pill.offset > (wish.after.get(pill.partition) ?? Number.POSITIVE_INFINITY) &&
    wish.matches(pill);
  const refuse = (one: Waiting, reason: NotRecovered) => {
    one.refusal = reason;
    left -= 1;
  };
  const wantersOf = ({ symbol }: EffectivePill) => [everything, bySymbol.get(symbol) ?? []];
  const makeRoom = () => {
    const most = waiting
      .filter(({ refusal }) => refusal === undefined)
      .reduce((a, b) => (b.found > a.found ? b : a));
    refuse(most, 'replay_busy');
    count = 0;
    for (const byPartition of [read, forgotten]) {
      for (const [partition, pills] of byPartition) {
        const kept = pills.filter((pill) =>
          wantersOf(pill).some((ones) => ones.some((one) => isWantedBy(one, pill))),
        );
        byPartition.set(partition, kept);
        count += kept.length;
      }
    }
  };
  return {
    read,
    forgotten,
    /** Those that were read come before those that were forgotten meanwhile. */
    joined(): ReadonlyMap<number, readonly EffectivePill[]> {
      for (const [partition, pills] of forgotten) addTo(read, partition, pills);
      return read;
    },
    /** @returns false when nobody is left to read for */
    take(pill: EffectivePill, byPartition: PillsOf): boolean {
      let isWanted = false;
      for (const ones of wantersOf(pill)) {
        for (const one of ones) {
          if (!isWantedBy(one, pill)) continue;
          one.found += 1;
          if (one.found > replayPillsMax) refuse(one, 'too_many_missed');
          else isWanted = true;
        }
      }
      if (isWanted) {
        addTo(byPartition, pill.partition, [pill]);
        count += 1;
        while (count > room() && left > 0) makeRoom();
      }
      return left > 0;
    },
  };
}

function addTo(byPartition: PillsOf, partition: number, pills: readonly EffectivePill[]): void {
  const own = byPartition.get(partition);
  if (own === undefined) byPartition.set(partition, [...pills]);
  else for (const pill of pills) own.push(pill);
}
