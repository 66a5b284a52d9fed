import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import type { ResumeRequest } from '../live/protocol.ts';
import type { Backlog } from './backlog.ts';
import type { Board } from './board.ts';
import { PastLostError, type Span } from './past.ts';

/** What a resume request comes to. */
export type Reached =
  /** Nothing was asked for. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'refused'; readonly reason: NotRecovered }
  /** All pills after these offsets are in the backlog, if it has not forgotten them since. */
  | { readonly kind: 'reached'; readonly after: Offsets; readonly notBefore: Micros };

export interface ResumeLimits {
  readonly replayWaitMs: number;
  readonly replayReadMs: number;
  readonly replaysWaitingMax: number;
}

export interface ResumeDeskOptions {
  readonly board: Board;
  readonly backlog: Backlog;
  readonly limits: ResumeLimits;
  /** Every partition of the topic. */
  readonly partitions: () => Iterable<number>;
  /** Offsets of the first records that were appended at a time (Unix ms) or later. */
  readonly offsetsAt: (timeMs: number) => Promise<Offsets>;
  /** First offset that the log still holds, by partition; may be some seconds old. */
  readonly begins: () => Promise<Offsets>;
  /** Reads pills with effect from the log. */
  readonly readPast: (
    spans: ReadonlyMap<number, Span>,
    onPill: (pill: EffectivePill) => void,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** Makes the past reachable for those who come back. */
export interface ResumeDesk {
  /** At once where memory holds it, else when it was read from the log. Never rejects. */
  reach(asked: ResumeRequest | undefined): Reached | Promise<Reached>;
  close(): void;
}

/** A receive time counts only within 5 s of the append time, by which the log is searched. */
const RECEIVE_SLACK_MS = 5_000;
const LOOK_MS = 20;
const LONG_AGO = 0;

/**
 * Creates the desk. What memory does not hold is read from the log once for all who wait for it: a
 * process that has just started, with all clients of its predecessor, reads it once.
 */
export function createResumeDesk(options: ResumeDeskOptions): ResumeDesk {
  const { board, backlog, limits } = options;
  const stop = new AbortController();
  // Each that waits listens; Node's own bound of 10 would warn of a leak.
  setMaxListeners(limits.replaysWaitingMax, stop.signal);
  /** Those who come while one reads share the next reading. */
  let reading: Promise<NotRecovered | undefined> | undefined;
  let next: Promise<NotRecovered | undefined> | undefined;
  let wanted = new Map<number, number>();
  let waiting = 0;

  const isHeld = (after: Offsets) =>
    [...after].every(([partition, offset]) => (backlog.startOf(partition) ?? 0) <= offset + 1);
  const isAhead = (after: Offsets) =>
    [...after].some(([partition, offset]) => offset > (board.offsets.get(partition) ?? -1));
  const spansFrom = (from: Offsets) => {
    const spans = new Map<number, Span>();
    for (const [partition, until] of backlog.starts) {
      const first = from.get(partition) ?? until;
      if (first < until) spans.set(partition, { from: first, until });
    }
    return spans;
  };
  const fits = (spans: ReadonlyMap<number, Span>) => {
    let records = 0;
    for (const { from, until } of spans.values()) records += until - from;
    return records <= backlog.room;
  };

  /** Reads what all who wait want, from the lowest offset of each partition on. */
  const readWanted = async (): Promise<NotRecovered | undefined> => {
    const spans = spansFrom(wanted);
    wanted = new Map();
    if (!fits(spans)) return 'position_expired';
    const found = new Map<number, EffectivePill[]>();
    try {
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(limits.replayReadMs)]);
      await options.readPast(
        spans,
        (pill) => {
          const run = found.get(pill.partition);
          if (run === undefined) found.set(pill.partition, [pill]);
          else run.push(pill);
        },
        signal,
      );
    } catch (error) {
      if (error instanceof PastLostError) return 'position_expired';
      options.onError(error);
      return 'log_unavailable';
    }
    for (const [partition, { from, until }] of spans) {
      // A partition whose start has moved meanwhile has forgotten pills in between.
      if (backlog.startOf(partition) === until) {
        backlog.prepend(partition, from, found.get(partition) ?? []);
      }
    }
    return undefined;
  };
  const joinReading = async (after: Offsets): Promise<NotRecovered | undefined> => {
    const begins = await options.begins();
    const merged = new Map(wanted);
    for (const [partition, offset] of after) {
      const first = offset + 1;
      if (first >= (backlog.startOf(partition) ?? 0)) continue;
      if (first < (begins.get(partition) ?? 0)) return 'position_expired';
      merged.set(partition, Math.min(first, merged.get(partition) ?? first));
    }
    // Who asks for too much is refused alone; the others are not held up.
    if (!fits(spansFrom(merged))) return 'position_expired';
    wanted = merged;
    next ??= (reading ?? Promise.resolve()).then(() => {
      reading = next;
      next = undefined;
      return readWanted();
    });
    return next;
  };

  const reachLater = async (asked: ResumeRequest): Promise<Reached> => {
    const found = await locate(asked, options);
    if (found.kind !== 'reached') return found;
    const { after } = found;
    const deadline = performance.now() + limits.replayWaitMs;
    // Another instance may have been ahead of this one.
    while (isAhead(after)) {
      if (performance.now() > deadline) return { kind: 'refused', reason: 'position_ahead' };
      await sleep(LOOK_MS, undefined, { signal: stop.signal });
    }
    if (isHeld(after)) return found;
    const reason = await joinReading(after);
    if (reason !== undefined) return { kind: 'refused', reason };
    return isHeld(after) ? found : { kind: 'refused', reason: 'position_expired' };
  };

  return {
    reach(asked) {
      if (asked === undefined) return { kind: 'nothing' };
      if (asked.kind === 'position') {
        const found = locatePosition(asked, options);
        if (found.kind !== 'reached' || (isHeld(found.after) && !isAhead(found.after))) {
          return found;
        }
      }
      if (waiting >= limits.replaysWaitingMax) return { kind: 'refused', reason: 'replay_busy' };
      waiting += 1;
      return reachLater(asked)
        .catch((error): Reached => {
          options.onError(error);
          return { kind: 'refused', reason: 'log_unavailable' };
        })
        .finally(() => {
          waiting -= 1;
        });
    },
    close: () => stop.abort(new Error('The process stops.')),
  };
}

async function locate(asked: ResumeRequest, options: ResumeDeskOptions): Promise<Reached> {
  if (asked.kind === 'position') return locatePosition(asked, options);
  const first = await options.offsetsAt(Math.floor(asked.since / 1000) - RECEIVE_SLACK_MS);
  const after = new Map([...first].map(([partition, offset]) => [partition, offset - 1]));
  return { kind: 'reached', after, notBefore: asked.since };
}

/** Every partition has an offset then: one that the position leaves out is at its beginning. */
function locatePosition(
  { position }: Extract<ResumeRequest, { kind: 'position' }>,
  { board, partitions }: ResumeDeskOptions,
): Reached {
  if (position.epoch !== board.epoch) return { kind: 'refused', reason: 'epoch_unknown' };
  const after = new Map<number, number>();
  for (const partition of partitions()) after.set(partition, position.offsets.get(partition) ?? -1);
  for (const partition of position.offsets.keys()) {
    if (!after.has(partition)) return { kind: 'refused', reason: 'partition_unknown' };
  }
  return { kind: 'reached', after, notBefore: LONG_AGO };
}
