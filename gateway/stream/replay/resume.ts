import { setTimeout as sleep } from 'node:timers/promises';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { PositionLostError } from '../../../lib/kafka/topics.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { Limits } from '../limits.ts';
import type { LatestPills } from '../log/latest-pills.ts';
import type { ReplayBuffer } from '../log/replay-buffer.ts';
import { type ReadSpans, type Span, SpanLostError } from '../log/span-reader.ts';
import type { ResumeRequest } from '../protocol/parse-frame.ts';
import type { ResumeReason } from '../protocol/resume-reasons.ts';
import { createBufferLoader } from './buffer-loader.ts';
import { createLogReplay } from './log-replay.ts';
import {
  matcherOf,
  type ReplayRequest,
  type ResumeOutcome,
  type ResumePoint,
} from './replay-plan.ts';

/** The account that resumes, and its subscription: only matching pills are read from the log. */
export interface ReplayScope extends Omit<ReplayRequest, 'outcome'> {
  readonly accountId: string;
}

export interface ResumerDeps {
  readonly latestPills: LatestPills;
  readonly replayBuffer: ReplayBuffer;
  readonly limits: Limits;
  /** Every partition of the topic. */
  readonly partitions: () => Iterable<number>;
  /** First offsets that were appended at a time (Unix ms) or later. */
  readonly offsetsAt: (timeMs: number) => Promise<Offsets>;
  /** First offset that the log still holds, by partition; may be some seconds old. */
  readonly logStarts: () => Promise<Offsets>;
  /** Reads pills with effect from the log. */
  readonly readSpans: (
    spans: ReadonlyMap<number, Span>,
    onPill: (pill: EffectivePill) => void,
    signal: AbortSignal,
  ) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export type Resumer = ReturnType<typeof createResumer>;

/** Receive times lie within 5 s of the append times that the log is searched by. */
const RECEIVE_SLACK_MS = 5_000;
const POLL_MS = 20;
const NO_TIME_LIMIT = 0;

/**
 * Creates the resumer. Pills that memory does not hold are read from the log, once for all waiting
 * clients: into the replay buffer while it has room (after a start, when all clients of the
 * previous process resume), otherwise only those that the waiting clients want.
 */
export function createResumer(deps: ResumerDeps) {
  const { latestPills, replayBuffer, limits } = deps;
  const stop = new AbortController();
  const readSpans = boundedReader(deps, stop.signal);
  const loader = createBufferLoader(replayBuffer, readSpans);
  const logReplay = createLogReplay({ replayBuffer, limits, readSpans });
  const waiting = createWaitingSlots(limits);
  const poll = createPoll(stop.signal);

  const missing = (after: Offsets) => missingFrom(replayBuffer, after);
  const isInMemory = (after: Offsets) => missing(after).every(({ count }) => count === 0);
  const isAhead = (after: Offsets) =>
    [...after].some(([partition, offset]) => offset > (latestPills.offsets.get(partition) ?? -1));

  /** Reads evicted pills: into the buffer while it has room, otherwise for this request alone. */
  const readBack = async (point: ResumePoint, scope: ReplayScope): Promise<ResumeOutcome> => {
    const { after, notBefore } = point;
    const starts = await deps.logStarts();
    const isLost = missing(after).some(
      ({ partition, first, count }) => count > 0 && first < (starts.get(partition) ?? 0),
    );
    if (isLost) return refused('position_expired');
    if (loader.hasRoom(after)) {
      const reason = await loader.load(after);
      if (reason !== undefined) return refused(reason);
      if (isInMemory(after)) return point;
    }
    const records = missing(after).reduce((sum, { count }) => sum + count, 0);
    if (records > limits.replayRecordsMax) return refused('too_many_missed');
    const matches = matcherOf(scope, notBefore);
    const logPills = await logReplay.read({ after, symbols: scope.symbols, matches });
    return typeof logPills === 'string' ? refused(logPills) : { ...point, logPills };
  };
  const prepare = async (request: ResumeRequest, scope: ReplayScope): Promise<ResumeOutcome> => {
    const point = await locate(request, deps);
    if (point.kind !== 'ready') return point;
    const deadline = performance.now() + limits.replayWaitMs;
    // The client may come from an instance that was ahead of this one.
    while (isAhead(point.after)) {
      if (performance.now() >= deadline) return refused('position_ahead');
      await poll();
    }
    return isInMemory(point.after) ? point : readBack(point, scope);
  };

  return {
    /** At once if memory holds the pills, otherwise after reading the log. Never rejects. */
    resume(
      request: ResumeRequest | undefined,
      scope: ReplayScope,
    ): ResumeOutcome | Promise<ResumeOutcome> {
      if (request === undefined) return { kind: 'none' };
      if (request.kind === 'position') {
        const point = locatePosition(request, deps);
        if (point.kind !== 'ready' || (isInMemory(point.after) && !isAhead(point.after))) {
          return point;
        }
      }
      const { accountId } = scope;
      if (!waiting.take(accountId)) return refused('replay_busy');
      return prepare(request, scope)
        .catch((error): ResumeOutcome => {
          deps.onError(error);
          return refused('log_unavailable');
        })
        .finally(() => waiting.release(accountId));
    },
    close: () => stop.abort(new Error('The process stops.')),
  };
}

/** The offsets after a position that the replay buffer does not hold, by partition. */
function missingFrom(replayBuffer: ReplayBuffer, after: Offsets) {
  return [...after].map(([partition, offset]) => ({
    partition,
    first: offset + 1,
    count: Math.max(0, (replayBuffer.startOf(partition) ?? 0) - (offset + 1)),
  }));
}

/** Limits each reading in time, and turns its failure into a reason. */
function boundedReader({ limits, readSpans, onError }: ResumerDeps, stop: AbortSignal): ReadSpans {
  return async (spans, onPill, enough) => {
    const inTime = AbortSignal.timeout(limits.replayReadMs);
    const ends = [stop, inTime, ...(enough === undefined ? [] : [enough])];
    let isReading = false;
    const take = (pill: EffectivePill) => {
      isReading = true;
      onPill(pill);
    };
    try {
      await readSpans(spans, take, AbortSignal.any(ends));
      return undefined;
    } catch (error) {
      if (enough?.aborted) return undefined;
      if (error instanceof SpanLostError || error instanceof PositionLostError) {
        return 'position_expired';
      }
      if (inTime.aborted && isReading) return 'too_many_missed';
      onError(error);
      return 'log_unavailable';
    }
  };
}

/** Bounds the resumes that wait, in total and by account. */
function createWaitingSlots(limits: ResumerDeps['limits']) {
  const byAccount = new Map<string, number>();
  let total = 0;
  return {
    take(accountId: string): boolean {
      const own = byAccount.get(accountId) ?? 0;
      if (total >= limits.replaysWaitingMax) return false;
      if (own >= limits.replaysWaitingPerAccountMax) return false;
      total += 1;
      byAccount.set(accountId, own + 1);
      return true;
    },
    release(accountId: string): void {
      const own = byAccount.get(accountId)! - 1;
      total -= 1;
      if (own > 0) byAccount.set(accountId, own);
      else byAccount.delete(accountId);
    },
  };
}

/** Resolves after a moment; all waiting callers share one timer. */
function createPoll(signal: AbortSignal): () => Promise<void> {
  let next: Promise<void> | undefined;
  return () => {
    next ??= sleep(POLL_MS, undefined, { signal }).finally(() => {
      next = undefined;
    });
    return next;
  };
}

function refused(reason: ResumeReason): ResumeOutcome {
  return { kind: 'refused', reason };
}

async function locate(request: ResumeRequest, deps: ResumerDeps): Promise<ResumeOutcome> {
  if (request.kind === 'position') return locatePosition(request, deps);
  // Negative times have other meanings in Kafka: -1 is the end of the log.
  const sinceMs = Math.max(0, Math.floor(request.since / 1000) - RECEIVE_SLACK_MS);
  const first = await deps.offsetsAt(sinceMs);
  const after = new Map([...first].map(([partition, offset]) => [partition, offset - 1]));
  return { kind: 'ready', after, notBefore: request.since };
}

/** Every partition gets an offset: a partition that the position omits is at its beginning. */
function locatePosition(
  { position }: Extract<ResumeRequest, { kind: 'position' }>,
  { latestPills, partitions }: ResumerDeps,
): ResumeOutcome {
  if (position.epoch !== latestPills.epoch) return refused('epoch_unknown');
  const after = new Map<number, number>();
  for (const partition of partitions()) after.set(partition, position.offsets.get(partition) ?? -1);
  for (const partition of position.offsets.keys()) {
    if (!after.has(partition)) return refused('partition_unknown');
  }
  return { kind: 'ready', after, notBefore: NO_TIME_LIMIT };
}
