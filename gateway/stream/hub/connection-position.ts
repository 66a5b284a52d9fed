import { formatPosition, type Offsets } from '../../../schemas/position.ts';
import type { LatestPills } from '../log/latest-pills.ts';
import type { Outbox } from '../wire/outbox.ts';

/** The beginning of every partition: for a resume by time whose offsets are not yet known. */
export const NO_OFFSETS: Offsets = new Map();

/**
 * The position of the process, lowered to one that holds for this client: once the client has read
 * all frames queued so far, it has every pill up to there. Pills held back by `latest` mode do not
 * count as queued.
 * @param pendingAfter the offsets that a resume in preparation starts from
 * @param queuedIsLost the queue will be dropped: only frames given to the socket count
 */
export function positionOf(
  latestPills: Pick<LatestPills, 'epoch' | 'offsets' | 'position'>,
  outbox: Pick<Outbox, 'holdsPills' | 'lower'>,
  pendingAfter: Offsets | undefined,
  queuedIsLost: boolean,
): string {
  if (pendingAfter === undefined && !queuedIsLost && !outbox.holdsPills) {
    return latestPills.position();
  }
  const offsets = new Map(latestPills.offsets);
  if (pendingAfter !== undefined) lowerTo(pendingAfter, offsets);
  outbox.lower(offsets, queuedIsLost);
  return formatPosition(latestPills.epoch, offsets);
}

function lowerTo(bound: Offsets, offsets: Map<number, number>): void {
  for (const [partition, offset] of offsets) {
    const until = bound.get(partition);
    if (until === undefined) offsets.delete(partition);
    else if (until < offset) offsets.set(partition, until);
  }
}
