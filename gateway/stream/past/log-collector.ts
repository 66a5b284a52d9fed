import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import { EVERY_SYMBOL } from '../live/subscription.ts';

/** What somebody wants of the part of the log that memory has forgotten. */
export interface LogWish {
  /** Last offset of each partition that it has; every partition is named. */
  readonly after: Offsets;
  /** `*` or names: what can match at all. */
  readonly symbols: readonly string[];
  readonly matches: (pill: EffectivePill) => boolean;
}

/** One who waits for a reading. */
export interface Waiting {
  readonly wish: LogWish;
  refusal: NotRecovered | undefined;
  /** It was answered: nothing is kept for it any more. */
  isAnswered: boolean;
}

/** Pills by partition. */
export type PillsOf = ReadonlyMap<number, readonly EffectivePill[]>;

export interface LogCollectorOptions {
  readonly waiting: readonly Waiting[];
  /** Where memory begins when the reading does. */
  readonly starts: Offsets;
  /** Pills that one may be given. */
  readonly replayPillsMax: number;
  /** Pills that all together may be given. */
  readonly room: () => number;
}

/** Keeps of a reading what somebody wants. */
export interface LogCollector {
  /** @returns false when nobody is left to read for */
  take(pill: EffectivePill): boolean;
  /** Takes what memory forgets; while the log is read it comes after all that is read. */
  takeForgotten(pill: EffectivePill): void;
  /** The log was read: joins what was read and what was forgotten meanwhile. Once. */
  join(): void;
  /** What is kept, ascending in each partition; changes in later turns. */
  readonly pills: PillsOf;
  /** Pills that somebody wants who was not refused. */
  readonly count: number;
}

/** Somebody's place among those who wait: the wider the wish, the later. */
interface Place {
  readonly one: Waiting;
  readonly index: number;
  found: number;
  /** Kept pills that nobody before it wants. */
  owned: number;
}

/** Pills of one partition, and beside each the first place that wants it. */
interface Run {
  readonly pills: EffectivePill[];
  readonly owners: Place[];
}

/** What `*` counts as, in symbols: more than can be named. */
const EVERY_WIDTH = 5_000;

/**
 * Creates it. Who wants more than one may have is refused alone. Where all together want more than
 * there is room for, those with the widest wish are refused (records missed × symbols) until the
 * others have room: all of what one wants or nothing is given.
 *
 * That order is fixed, and each pill belongs to the first who wants it. So a refusal from the end
 * of the order frees exactly what is owned there, at once and without asking anybody again: a
 * thousand who want the same are refused in a thousand steps. What belongs to one who was refused
 * alone stays until the order's end has come to it, since others may want it.
 */
export function createLogCollector(options: LogCollectorOptions): LogCollector {
  const { replayPillsMax, room } = options;
  const places = placesOf(options);
  const everything = places.filter(({ one }) => one.wish.symbols.includes(EVERY_SYMBOL));
  const bySymbol = new Map<string, Place[]>();
  const read = new Map<number, Run>();
  let forgotten = new Map<number, Run>();
  const pills = new Map<number, readonly EffectivePill[]>();
  /** Those from this place on were refused for want of room. */
  let end = places.length;
  let left = places.length;
  let count = 0;
  /** Pills that nobody wants any more and that are not swept out yet: a quarter of `count`. */
  let gone = 0;

  for (const place of places) {
    const { symbols } = place.one.wish;
    if (symbols.includes(EVERY_SYMBOL)) continue;
    for (const symbol of new Set(symbols)) {
      const own = bySymbol.get(symbol);
      if (own === undefined) bySymbol.set(symbol, [place]);
      else own.push(place);
    }
  }

  const refuse = ({ one }: Place, reason: NotRecovered) => {
    if (isOut(one)) return;
    one.refusal = reason;
    left -= 1;
  };
  /** Counts the pill for all in the list who want it, and drops those who are out. */
  const firstOf = (list: Place[], pill: EffectivePill): Place | undefined => {
    let first: Place | undefined;
    let to = 0;
    for (const place of list) {
      if (isOut(place.one)) continue;
      list[to] = place;
      to += 1;
      if (!isWantedBy(place.one.wish, pill)) continue;
      place.found += 1;
      if (place.found > replayPillsMax) refuse(place, 'too_many_missed');
      else first ??= place;
    }
    list.length = to;
    return first;
  };
  const makeRoom = () => {
    while (count > room() && end > 0) {
      end -= 1;
      const last = places[end]!;
      refuse(last, 'replay_busy');
      count -= last.owned;
      gone += last.owned;
    }
    // A quarter of those left at the least, so that what is swept out has paid for the looking.
    if (gone * 4 > count) sweepOut();
  };
  const sweepOut = () => {
    gone = 0;
    for (const runs of [read, forgotten]) for (const run of runs.values()) sweep(run, end);
  };
  const keep = (pill: EffectivePill, runs: Map<number, Run>): boolean => {
    const ofAll = firstOf(everything, pill);
    const ofNamed = firstOf(bySymbol.get(pill.symbol) ?? [], pill);
    const owner =
      ofAll === undefined || (ofNamed !== undefined && ofNamed.index < ofAll.index)
        ? ofNamed
        : ofAll;
    if (owner !== undefined) {
      const run = runOf(runs, pill.partition);
      run.pills.push(pill);
      run.owners.push(owner);
      owner.owned += 1;
      count += 1;
      makeRoom();
    }
    return left > 0;
  };
  return {
    take: (pill) => keep(pill, read),
    takeForgotten: (pill) => keep(pill, forgotten),
    join() {
      sweepOut();
      for (const [partition, { pills, owners }] of forgotten) {
        const run = runOf(read, partition);
        for (const pill of pills) run.pills.push(pill);
        for (const owner of owners) run.owners.push(owner);
      }
      forgotten = read;
    },
    get pills() {
      for (const [partition, run] of read) pills.set(partition, run.pills);
      return pills;
    },
    get count() {
      return count;
    },
  };
}

const isOut = ({ refusal, isAnswered }: Waiting): boolean => refusal !== undefined || isAnswered;

function isWantedBy({ after, matches }: LogWish, pill: EffectivePill): boolean {
  return pill.offset > (after.get(pill.partition) ?? Number.POSITIVE_INFINITY) && matches(pill);
}

/** The narrowest wish first; of equal ones the one that came first. */
function placesOf({ waiting, starts }: LogCollectorOptions): Place[] {
  const widthOf = ({ after, symbols }: LogWish) => {
    let records = 0;
    for (const [partition, offset] of after) {
      records += Math.max(0, (starts.get(partition) ?? 0) - (offset + 1));
    }
    return records * (symbols.includes(EVERY_SYMBOL) ? EVERY_WIDTH : symbols.length);
  };
  return waiting
    .map((one) => ({ one, width: widthOf(one.wish) }))
    .sort((a, b) => a.width - b.width)
    .map(({ one }, index) => ({ one, index, found: 0, owned: 0 }));
}

function runOf(runs: Map<number, Run>, partition: number): Run {
  const own = runs.get(partition);
  if (own !== undefined) return own;
  const run: Run = { pills: [], owners: [] };
  runs.set(partition, run);
  return run;
}

/** Drops what belongs to those from a place on. */
function sweep({ pills, owners }: Run, end: number): void {
  let to = 0;
  for (const [at, owner] of owners.entries()) {
    if (owner.index >= end) continue;
    pills[to] = pills[at]!;
    owners[to] = owner;
    to += 1;
  }
  pills.length = to;
  owners.length = to;
}
