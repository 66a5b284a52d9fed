import { setTimeout as sleep } from 'node:timers/promises';
import { PositionLostError } from '../../../lib/kafka/topics.ts';
import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import type { ResumeRequest } from '../live/protocol.ts';
import type { Backlog } from './backlog.ts';
import type { Board } from './board.ts';
import { createLogReplay, type LogReplayLimits } from './log-replay.ts';
import { PastLostError, type PastReading, type Span } from './past.ts';
import type { Held, Reached } from './reached.ts';
import { createRefill } from './refill.ts';
import { matcherOf, type ReplayWish } from './replay.ts';

/** Who asks, and for what: only that is read from the log. */
export interface Asker extends Omit<ReplayWish, 'reached'> {
  readonly accountId: string;
}

export interface ResumeLimits extends LogReplayLimits {
  readonly replayWaitMs: number;
  readonly replayReadMs: number;
  readonly replayRecordsMax: number;
  readonly replaysWaitingMax: number;
  readonly replaysWaitingPerAccountMax: number;
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
  reach(asked: ResumeRequest | undefined, asker: Asker): Reached | Promise<Reached>;
  close(): void;
}

/** A receive time counts only within 5 s of the append time, by which the log is searched. */
const RECEIVE_SLACK_MS = 5_000;
const LOOK_MS = 20;
const LONG_AGO = 0;

/**
 * Creates the desk. What memory does not hold is read from the log, once for all who wait for it:
 * into memory while that has room (a process that has just started, with all clients of its
 * predecessor), else only what those who wait want.
 */
export function createResumeDesk(options: ResumeDeskOptions): ResumeDesk {
  const { board, backlog, limits } = options;
  const stop = new AbortController();
  const waitingOf = new Map<string, number>();
  let waiting = 0;
  let nextLook: Promise<void> | undefined;

  const readLog: PastReading = async (spans, onPill, enough) => {
    const inTime = AbortSignal.timeout(limits.replayReadMs);
    const ends = [stop.signal, inTime, ...(enough === undefined ? [] : [enough])];
    let isReading = false;
    const take = (pill: EffectivePill) => {
      isReading = true;
      onPill(pill);
    };
    try {
      await options.readPast(spans, take, AbortSignal.any(ends));
      return undefined;
    } catch (error) {
      if (enough?.aborted) return undefined;
      if (error instanceof PastLostError || error instanceof PositionLostError) {
        return 'position_expired';
      }
      if (inTime.aborted && isReading) return 'too_many_missed';
      options.onError(error);
      return 'log_unavailable';
    }
  };
  const refill = createRefill(backlog, readLog);
  const logReplay = createLogReplay({ backlog, limits, readLog });

  const missing = (after: Offsets) =>
    [...after].map(([partition, offset]) => ({
      ...{ partition, first: offset + 1 },
      count: Math.max(0, (backlog.startOf(partition) ?? 0) - (offset + 1)),
    }));
  const isHeld = (after: Offsets) => missing(after).every(({ count }) => count === 0);
  const isAhead = (after: Offsets) =>
    [...after].some(([partition, offset]) => offset > (board.offsets.get(partition) ?? -1));
  /** Resolves in a moment: one timer for all who wait. */
  const look = () => {
    nextLook ??= sleep(LOOK_MS, undefined, { signal: stop.signal }).finally(() => {
      nextLook = undefined;
    });
    return nextLook;
  };

  /** What memory has forgotten: put back while there is room, else read for those who ask alone. */
  const readBack = async (found: Held, asker: Asker): Promise<Reached> => {
    const { after, notBefore } = found;
    const begins = await options.begins();
    const isLost = missing(after).some(
      ({ partition, first, count }) => count > 0 && first < (begins.get(partition) ?? 0),
    );
    if (isLost) return refused('position_expired');
    if (refill.hasRoom(after)) {
      const reason = await refill.fill(after);
      if (reason !== undefined) return refused(reason);
      if (isHeld(after)) return found;
    }
    const records = missing(after).reduce((sum, { count }) => sum + count, 0);
    if (records > limits.replayRecordsMax) return refused('too_many_missed');
    const matches = matcherOf(asker, notBefore);
    const past = await logReplay.read({ after, symbols: asker.symbols, matches });
    return typeof past === 'string' ? refused(past) : { ...found, past };
  };
  const reachLater = async (asked: ResumeRequest, asker: Asker): Promise<Reached> => {
    const found = await locate(asked, options);
    if (found.kind !== 'reached') return found;
    const deadline = performance.now() + limits.replayWaitMs;
    // Another instance may have been ahead of this one.
    while (isAhead(found.after)) {
      if (performance.now() > deadline) return refused('position_ahead');
      await look();
    }
    return isHeld(found.after) ? found : readBack(found, asker);
  };
  const enter = (accountId: string): boolean => {
    const own = waitingOf.get(accountId) ?? 0;
    if (waiting >= limits.replaysWaitingMax) return false;
    if (own >= limits.replaysWaitingPerAccountMax) return false;
    waiting += 1;
    waitingOf.set(accountId, own + 1);
    return true;
  };
  const leave = (accountId: string) => {
    const own = waitingOf.get(accountId)! - 1;
    waiting -= 1;
    if (own > 0) waitingOf.set(accountId, own);
    else waitingOf.delete(accountId);
  };

  return {
    reach(asked, asker) {
      if (asked === undefined) return { kind: 'nothing' };
      if (asked.kind === 'position') {
        const found = locatePosition(asked, options);
        if (found.kind !== 'reached' || (isHeld(found.after) && !isAhead(found.after))) {
          return found;
        }
      }
      const { accountId } = asker;
      if (!enter(accountId)) return refused('replay_busy');
      return reachLater(asked, asker)
        .catch((error): Reached => {
          options.onError(error);
          return refused('log_unavailable');
        })
        .finally(() => leave(accountId));
    },
    close: () => stop.abort(new Error('The process stops.')),
  };
}

function refused(reason: NotRecovered): Reached {
  return { kind: 'refused', reason };
}

async function locate(asked: ResumeRequest, options: ResumeDeskOptions): Promise<Reached> {
  if (asked.kind === 'position') return locatePosition(asked, options);
  // Below 0 the log has other meanings: -1 is its end.
  const sinceMs = Math.max(0, Math.floor(asked.since / 1000) - RECEIVE_SLACK_MS);
  const first = await options.offsetsAt(sinceMs);
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
