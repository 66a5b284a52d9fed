import { pushFrame, type Subscriber } from '../hub/subscriber.ts';
import { ALL_SYMBOLS } from '../protocol/subscription.ts';
import { neverSeenFrame, quietFrame, quietSummaryFrame } from './quiet-frames.ts';
import type { QuietGroup, QuietState } from './quiet-groups.ts';
import type { QuietTracker } from './quiet-tracker.ts';

interface QuietNotifierOptions {
  readonly tracker: Pick<QuietTracker, 'stateOf' | 'isKnown' | 'groups' | 'isSilent'>;
  readonly subscribersNaming: (symbol: string) => Iterable<Subscriber>;
  readonly wildcardSubscribers: () => Iterable<Subscriber>;
  /** Frames per turn, so that pills are sent between turns. */
  readonly framesPerTurn: number;
  /** Minimum interval between the summaries of a venue. */
  readonly summaryMs: number;
}

/** Why a subscriber must be notified: it is new, or its socket was blocked. */
type Cause = 'new' | 'missed';

/**
 * Creates the sender of `quiet` frames to subscribers. A frame is built once for all its
 * recipients. A subscriber whose socket is blocked gets the newest state of its symbols when the
 * socket flows again: at most one frame per named symbol is outstanding, and none is in its queue.
 */
export function createQuietNotifier(options: QuietNotifierOptions) {
  const { tracker, subscribersNaming, framesPerTurn } = options;
  const symbols = createSymbolNotices(options);
  const summaries = createSummaryNotices(options);
  return {
    /** Queues the quiet symbols of the subscription, to be sent after `live`. */
    onSubscribed(subscriber: Subscriber, symbol: string) {
      if (symbol === ALL_SYMBOLS) {
        summaries.owe(subscriber, 'new');
        return;
      }
      const state = tracker.stateOf(symbol);
      const isQuiet = state === undefined ? !tracker.isKnown(symbol) : !state.over;
      if (isQuiet) symbols.owe(subscriber, symbol, 'new');
    },
    onChange({ symbol }: QuietState) {
      if (subscribersNaming(symbol)[Symbol.iterator]().next().done !== true) symbols.change(symbol);
    },
    onGroup: summaries.change,
    /**
     * Sends up to `framesPerTurn` frames, and at most the summaries of one subscriber more.
     * @param isJudged whether all checks are done: an earlier summary would be incomplete
     * @returns whether more frames can be sent in a next turn
     */
    turn(nowMs: number, isJudged: boolean): boolean {
      let left = framesPerTurn;
      left -= symbols.sendChanged(left);
      left -= symbols.sendOwed(left);
      left -= summaries.sendOwed(nowMs, left);
      left -= summaries.sendChanged(nowMs, left, isJudged);
      return left <= 0 || symbols.isPending() || summaries.isPending();
    },
  };
}

/** Frames about named symbols. */
function createSymbolNotices({ tracker, subscribersNaming }: QuietNotifierOptions) {
  const changed = new Set<string>();
  let current: { readonly symbol: string; readonly rest: Iterator<Subscriber> } | undefined;
  const owed = new Map<Subscriber, Map<string, Cause>>();
  const frameOf = createFrames(tracker);
  const owe = (subscriber: Subscriber, symbol: string, cause: Cause) => {
    const own = owed.get(subscriber);
    if (own === undefined) owed.set(subscriber, new Map([[symbol, cause]]));
    else if (!own.has(symbol)) own.set(symbol, cause);
  };

  return {
    owe,
    change: (symbol: string) => void changed.add(symbol),
    isPending: () => changed.size > 0 || current !== undefined,
    /** @returns the number of frames sent */
    sendChanged(max: number): number {
      let count = 0;
      while (count < max) {
        if (current === undefined) {
          const [symbol] = changed;
          if (symbol === undefined) return count;
          changed.delete(symbol);
          current = { symbol, rest: subscribersNaming(symbol)[Symbol.iterator]() };
        }
        const { symbol, rest } = current;
        const next = rest.next();
        if (next.done === true) {
          current = undefined;
          continue;
        }
        count += 1;
        const frame = frameOf(symbol);
        // A subscriber with an outstanding update of the symbol gets its newest state later.
        if (owed.get(next.value)?.has(symbol) === true) continue;
        if (!next.value.outbox.isFlowing) owe(next.value, symbol, 'missed');
        else if (frame !== undefined) pushFrame(next.value, frame);
      }
      return count;
    },
    /** @returns the number of frames sent */
    sendOwed(max: number): number {
      let count = 0;
      for (const [subscriber, own] of owed) {
        for (const [symbol, cause] of own) {
          if (count >= max) return count;
          if (!subscriber.named.has(symbol)) own.delete(symbol);
          else if (subscriber.outbox.isFlowing) {
            own.delete(symbol);
            const frame = frameOf(symbol);
            // A new subscriber needs no end of a period whose beginning it never got.
            const isNews = cause === 'missed' || tracker.stateOf(symbol)?.over !== true;
            if (frame === undefined || !isNews) continue;
            count += 1;
            pushFrame(subscriber, frame);
          } else break;
        }
        if (own.size === 0) owed.delete(subscriber);
      }
      return count;
    },
  };
}

/** The newest frame of each symbol, built once; undefined for a symbol that never was quiet. */
function createFrames(tracker: QuietNotifierOptions['tracker']) {
  const frames = new WeakMap<QuietState, Buffer>();
  return (symbol: string): Buffer | undefined => {
    const state = tracker.stateOf(symbol);
    if (state === undefined) return tracker.isKnown(symbol) ? undefined : neverSeenFrame(symbol);
    let frame = frames.get(state);
    if (frame === undefined) {
      frame = quietFrame(state);
      frames.set(state, frame);
    }
    return frame;
  };
}

/**
 * Summaries for subscribers to `*`, of venues that send nothing at all: while pills of a venue
 * arrive, a few quiet symbols are no news.
 */
function createSummaryNotices({ tracker, wildcardSubscribers, summaryMs }: QuietNotifierOptions) {
  let current:
    | { readonly frames: readonly Buffer[]; readonly rest: Iterator<Subscriber> }
    | undefined;
  let sentAtMs = Number.NEGATIVE_INFINITY;
  const news = createVenueNews(tracker);
  /** Subscribers that need all groups: new subscribers, and subscribers that missed a summary. */
  const owed = new Map<Subscriber, Cause>();

  return {
    owe(subscriber: Subscriber, cause: Cause) {
      if (!owed.has(subscriber)) owed.set(subscriber, cause);
    },
    change: news.change,
    isPending: () => current !== undefined,
    /** @returns the number of frames sent */
    sendChanged(nowMs: number, max: number, isJudged: boolean): number {
      const isDue = isJudged && nowMs - sentAtMs >= summaryMs;
      if (current === undefined && isDue) {
        const frames = news.take(nowMs);
        if (frames.length > 0) {
          sentAtMs = nowMs;
          current = { frames, rest: [...wildcardSubscribers()][Symbol.iterator]() };
        }
      }
      let count = 0;
      while (current !== undefined && count < max) {
        const next = current.rest.next();
        if (next.done === true) current = undefined;
        else if (owed.has(next.value)) continue;
        else if (next.value.outbox.isFlowing) {
          for (const frame of current.frames) pushFrame(next.value, frame);
          count += current.frames.length;
        } else if (next.value.wildcard !== undefined) owed.set(next.value, 'missed');
      }
      return count;
    },
    /** @returns the number of frames sent */
    sendOwed(nowMs: number, max: number): number {
      let count = 0;
      const frames = new Map<QuietGroup, Buffer>();
      for (const [subscriber, cause] of owed) {
        if (count >= max) return count;
        if (subscriber.wildcard === undefined) owed.delete(subscriber);
        if (subscriber.wildcard === undefined || !subscriber.outbox.isFlowing) continue;
        owed.delete(subscriber);
        for (const group of tracker.groups()) {
          const isSilent = tracker.isSilent(group, nowMs);
          // Otherwise the end of the silence would not be reported.
          if (isSilent) news.markReported(group);
          else if (cause === 'new') continue;
          const frame = frames.get(group) ?? quietSummaryFrame(group, !isSilent, nowMs);
          frames.set(group, frame);
          pushFrame(subscriber, frame);
          count += 1;
        }
      }
      return count;
    },
  };
}

/** The changes of silent venues that no summary has reported. */
function createVenueNews(tracker: QuietNotifierOptions['tracker']) {
  const changed = new Set<QuietGroup>();
  /** Groups whose last summary has no `over`. */
  const reported = new Set<QuietGroup>();
  return {
    change: (group: QuietGroup) => void changed.add(group),
    markReported: (group: QuietGroup) => void reported.add(group),
    /** The summaries to send: news about silent venues, and ends of reported silences. */
    take(nowMs: number): Buffer[] {
      const frames: Buffer[] = [];
      for (const group of tracker.groups()) {
        const isSilent = tracker.isSilent(group, nowMs);
        const isNews = isSilent ? changed.has(group) || !reported.has(group) : reported.has(group);
        if (!isNews) continue;
        if (isSilent) reported.add(group);
        else reported.delete(group);
        frames.push(quietSummaryFrame(group, !isSilent, nowMs));
      }
      changed.clear();
      return frames;
    },
  };
}
