import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { Limits } from '../limits.ts';
import type { ReplayBuffer } from '../log/replay-buffer.ts';
import type { ReadSpans, Span } from '../log/span-reader.ts';
import type { ResumeReason } from '../protocol/resume-reasons.ts';
import {
  LogCollector,
  type LogRequest,
  type PendingRequest,
  type PillsByPartition,
} from './log-collector.ts';

/** Pills read from the log for waiting clients, in addition to those in the replay buffer. */
export interface LogPills {
  /** Ascending in each partition; includes pills for others, and some that the buffer holds too. */
  readonly byPartition: PillsByPartition;
  /** First offset of each partition that was not read: the start of the buffer at that moment. */
  readonly until: Offsets;
  /** Keeps the pills counted as in use. @returns releases them; once */
  hold(): () => void;
}

interface LogReplayDeps {
  readonly replayBuffer: Pick<ReplayBuffer, 'starts' | 'onEvict'>;
  /** The pills of one request, and of all readings until their last user has sent them. */
  readonly limits: Pick<Limits, 'replayPillsMax' | 'logReplayPillsMax'>;
  readonly readSpans: ReadSpans;
}

/** A request, and how to answer it. */
interface WaitingRequest extends PendingRequest {
  readonly resolve: (answer: LogPills | ResumeReason) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates the reader of missed pills. Requests that arrive during a reading share the next one: the
 * log is read once for them, from the oldest offset that any of them needs up to the start of the
 * replay buffer. Pills that the buffer evicts meanwhile are caught, so that there is no hole when
 * the reading ends.
 *
 * Each request is answered in a turn of its own, because selecting its pills costs time in
 * proportion to all pills; the answer must be used in that turn.
 */
export function createLogReplay(deps: LogReplayDeps) {
  /** The pills that all readings hold. */
  const usage = { held: 0 };
  let reading: Promise<unknown> = Promise.resolve();
  let next: WaitingRequest[] | undefined;

  const open = (): WaitingRequest[] => {
    const requests: WaitingRequest[] = [];
    reading = reading.then(() => {
      next = undefined;
      return readFor(requests, deps, usage).catch((error) => {
        for (const one of requests) one.reject(error);
      });
    });
    return requests;
  };

  return {
    /** @returns the pills, or why they cannot be read. */
    read(request: LogRequest): Promise<LogPills | ResumeReason> {
      next ??= open();
      const requests = next;
      return new Promise((resolve, reject) => {
        requests.push({ request, refusal: undefined, isAnswered: false, resolve, reject });
      });
    },
  };
}

/** Reads the log once for these requests, and answers them one per turn. */
async function readFor(
  requests: readonly WaitingRequest[],
  { replayBuffer, limits, readSpans }: LogReplayDeps,
  usage: { held: number },
): Promise<void> {
  const enough = new AbortController();
  const starts = replayBuffer.starts;
  /** The part of `usage.held` that belongs to this reading. */
  let ownHeld = 0;
  const collector = new LogCollector({
    requests,
    starts,
    replayPillsMax: limits.replayPillsMax,
    room: () => limits.logReplayPillsMax - (usage.held - ownHeld),
  });
  const holdOwn = (count: number) => {
    usage.held += count - ownHeld;
    ownHeld = count;
  };
  const spans = spansOf(requests, starts);
  const stopCatching = replayBuffer.onEvict((pill) => {
    if (pill.offset >= (spans.get(pill.partition)?.until ?? 0)) collector.takeEvicted(pill);
  });
  const take = (pill: EffectivePill) => {
    if (!collector.take(pill)) enough.abort();
  };
  try {
    const reason = await readSpans(spans, take, enough.signal);
    collector.join();
    const hold = createHold(() => holdOwn(0));
    const release = hold();
    for (const one of requests) {
      holdOwn(collector.count);
      const { pills: byPartition } = collector;
      const refusal = one.refusal ?? reason;
      one.isAnswered = true;
      one.resolve(refusal ?? { byPartition, until: replayBuffer.starts, hold });
      await nextTurn();
    }
    release();
  } finally {
    stopCatching();
  }
}

/** A reference count. @param onFree called when the last holder has released */
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

function spansOf(requests: readonly PendingRequest[], starts: Offsets): ReadonlyMap<number, Span> {
  const spans = new Map<number, Span>();
  for (const { request } of requests) {
    for (const [partition, offset] of request.after) {
      const from = Math.min(offset + 1, spans.get(partition)?.from ?? Number.POSITIVE_INFINITY);
      spans.set(partition, { from, until: starts.get(partition) ?? 0 });
    }
  }
  return spans;
}
