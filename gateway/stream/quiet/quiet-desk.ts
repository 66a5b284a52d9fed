import type { Seat } from '../live/seat.ts';
import { EVERY_SYMBOL } from '../live/subscription.ts';
import { neverSeenFrame, quietFrame, quietSummaryFrame } from './quiet-frames.ts';
import type { Group, QuietWatch, Told } from './quiet-watch.ts';

/** Who is told what of the quiet symbols. */
export interface QuietDesk {
  /** A seat has subscribed: it is told of what is quiet already, when its hand-over is done. */
  onSubscribed(seat: Seat, symbol: string): void;
  onChange(told: Told): void;
  onGroup(group: Group): void;
  /**
   * Tells some of it: `framesPerTurn`, and the sums of one seat more at the most.
   * @param isJudged whether all were judged: a sum begun before would be a part of itself
   * @returns whether more can be told in a next turn
   */
  turn(nowMs: number, isJudged: boolean): boolean;
}

export interface QuietDeskOptions {
  readonly watch: Pick<QuietWatch, 'toldOf' | 'isKnown' | 'groups'>;
  readonly seatsNaming: (symbol: string) => Iterable<Seat>;
  /** Those who want `*`. */
  readonly starSeats: () => Iterable<Seat>;
  /** Frames of one turn: pills go between. */
  readonly framesPerTurn: number;
  /** A venue's summary is not told more often. */
  readonly summaryMs: number;
}

/** Why somebody is to be told: it has just come, or its socket was blocked. */
type Since = 'new' | 'missed';

/**
 * Creates the desk. A frame is made once for all who get it. A seat whose socket is blocked owes
 * its symbols instead, and is told their newest state when it flows: at most one frame for each
 * symbol it names waits for it, and none stands in its queue.
 */
export function createQuietDesk(options: QuietDeskOptions): QuietDesk {
  const { watch, seatsNaming, starSeats, framesPerTurn, summaryMs } = options;
  const changed = new Set<string>();
  let current: { readonly symbol: string; readonly rest: Iterator<Seat> } | undefined;
  const owed = new Map<Seat, Map<string, Since>>();
  const dirty = new Set<Group>();
  let news: { readonly frames: readonly Buffer[]; readonly rest: Iterator<Seat> } | undefined;
  let newsAtMs = Number.NEGATIVE_INFINITY;
  /** Who wants `*` and must be told of all groups: the new ones, and those who missed some news. */
  const behind = new Map<Seat, Since>();
  const frames = new WeakMap<Told, Buffer>();

  const frameOf = (symbol: string): Buffer | undefined => {
    const told = watch.toldOf(symbol);
    if (told === undefined) return watch.isKnown(symbol) ? undefined : neverSeenFrame(symbol);
    let frame = frames.get(told);
    if (frame === undefined) {
      frame = quietFrame(told);
      frames.set(told, frame);
    }
    return frame;
  };
  const owe = (seat: Seat, symbol: string, since: Since) => {
    const symbols = owed.get(seat);
    if (symbols === undefined) owed.set(seat, new Map([[symbol, since]]));
    else if (!symbols.has(symbol)) symbols.set(symbol, since);
  };

  /** @returns frames told */
  const tellChanged = (max: number): number => {
    let count = 0;
    while (count < max) {
      if (current === undefined) {
        const [symbol] = changed;
        if (symbol === undefined) return count;
        changed.delete(symbol);
        current = { symbol, rest: seatsNaming(symbol)[Symbol.iterator]() };
      }
      const next = current.rest.next();
      if (next.done === true) {
        current = undefined;
        continue;
      }
      count += 1;
      const { symbol } = current;
      const frame = frameOf(symbol);
      // Who is owed the symbol is told its newest state then.
      if (owed.get(next.value)?.has(symbol) === true) continue;
      if (!next.value.outbox.isFlowing) owe(next.value, symbol, 'missed');
      else if (frame !== undefined) give(next.value, frame);
    }
    return count;
  };
  const tellOwed = (max: number): number => {
    let count = 0;
    for (const [seat, symbols] of owed) {
      for (const [symbol, since] of symbols) {
        if (count >= max) return count;
        if (!seat.named.has(symbol)) symbols.delete(symbol);
        else if (seat.outbox.isFlowing) {
          symbols.delete(symbol);
          const frame = frameOf(symbol);
          // Who was never told that it began need not hear that it is over.
          const isNews = since === 'missed' || watch.toldOf(symbol)?.over !== true;
          if (frame === undefined || !isNews) continue;
          count += 1;
          give(seat, frame);
        } else break;
      }
      if (symbols.size === 0) owed.delete(seat);
    }
    return count;
  };
  const tellNews = (nowMs: number, max: number, isJudged: boolean): number => {
    const isDue = isJudged && nowMs - newsAtMs >= summaryMs;
    if (news === undefined && dirty.size > 0 && isDue) {
      newsAtMs = nowMs;
      const made = [...dirty].map((group) => quietSummaryFrame(group, nowMs));
      news = { frames: made, rest: [...starSeats()][Symbol.iterator]() };
      dirty.clear();
    }
    let count = 0;
    while (news !== undefined && count < max) {
      const next = news.rest.next();
      if (next.done === true) news = undefined;
      else if (behind.has(next.value)) continue;
      else if (next.value.outbox.isFlowing) {
        for (const frame of news.frames) give(next.value, frame);
        count += news.frames.length;
      } else if (next.value.star !== undefined) behind.set(next.value, 'missed');
    }
    return count;
  };
  const tellBehind = (nowMs: number, max: number): number => {
    let count = 0;
    const made = new Map<Group, Buffer>();
    for (const [seat, since] of behind) {
      if (count >= max) return count;
      if (seat.star === undefined) behind.delete(seat);
      if (seat.star === undefined || !seat.outbox.isFlowing) continue;
      behind.delete(seat);
      for (const group of watch.groups()) {
        if (group.symbols.size === 0 && since === 'new') continue;
        const frame = made.get(group) ?? quietSummaryFrame(group, nowMs);
        made.set(group, frame);
        give(seat, frame);
        count += 1;
      }
    }
    return count;
  };

  return {
    onSubscribed(seat, symbol) {
      if (symbol === EVERY_SYMBOL) {
        if (!behind.has(seat)) behind.set(seat, 'new');
        return;
      }
      const told = watch.toldOf(symbol);
      const isQuiet = told === undefined ? !watch.isKnown(symbol) : !told.over;
      if (isQuiet) owe(seat, symbol, 'new');
    },
    onChange({ symbol }) {
      if (seatsNaming(symbol)[Symbol.iterator]().next().done !== true) changed.add(symbol);
    },
    onGroup: (group) => void dirty.add(group),
    turn(nowMs, isJudged) {
      let left = framesPerTurn;
      left -= tellChanged(left);
      left -= tellOwed(left);
      left -= tellBehind(nowMs, left);
      left -= tellNews(nowMs, left, isJudged);
      return left <= 0 || changed.size > 0 || current !== undefined || news !== undefined;
    },
  };
}

function give(seat: Seat, frame: Buffer): void {
  seat.outbox.push(frame);
  if (seat.outbox.broken || seat.outbox.overflowed) seat.onOverflow();
}
