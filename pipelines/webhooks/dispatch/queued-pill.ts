import { countFitting, type PostedPill } from '../../../domain/webhooks/events/webhook-message.ts';
import type { OwnedRange } from '../fencing.ts';

/** A pill that is queued for one endpoint. */
export interface QueuedPill {
  readonly encoded: PostedPill;
  /** The pill may have been attempted singly before a crash, so it keeps its own id. */
  readonly isAlone: boolean;
  /** The pill is delivered, stored, or no longer ours. */
  settle(): void;
  /** Whether this process still owns the partition. */
  isOurs(): boolean;
  /** Name under which the partition was taken. */
  readonly owner: string;
}

/** Pills of one message, whatever their bytes. */
const RUN_PILLS_MAX = 200;

export function settleAll(pills: readonly QueuedPill[]): void {
  for (const pill of pills) pill.settle();
}

/** Whether the pills fill a message. */
export function fillsMessage(pills: readonly QueuedPill[]): boolean {
  return pills.length > countOfMessage(pills) || pills.length >= RUN_PILLS_MAX;
}

/**
 * Takes the first pills that pass the test, as many as one message may hold; a pill that keeps its
 * own id goes alone. The first pill of all must pass.
 */
export function takeRun<P extends QueuedPill>(
  waiting: P[],
  test: (pill: P) => boolean = () => true,
): P[] {
  if (waiting[0]!.isAlone) return waiting.splice(0, 1);
  const end = waiting.findIndex((pill) => pill.isAlone || !test(pill));
  return waiting.splice(0, countOfMessage(end < 0 ? waiting : waiting.slice(0, end)));
}

/** How many of the first pills one message may hold. */
function countOfMessage(pills: readonly QueuedPill[]): number {
  return countFitting(encodedOf(pills.slice(0, RUN_PILLS_MAX)));
}

export function encodedOf(pills: readonly QueuedPill[]): PostedPill[] {
  return pills.map(({ encoded }) => encoded);
}

/** The pills that a message holds: within one endpoint and partition, consecutive matches. */
export function rangesOf(pills: readonly QueuedPill[]): OwnedRange[] {
  const ranges = new Map<string, OwnedRange & { last: number }>();
  for (const { encoded, owner } of pills) {
    const { partition, offset } = encoded;
    const key = `${partition} ${owner}`;
    const range = ranges.get(key);
    if (range === undefined) ranges.set(key, { partition, owner, first: offset, last: offset });
    else range.last = offset;
  }
  return [...ranges.values()];
}
