// What a connection tells of itself that must be true.
import { formatPosition, type Offsets } from '../../../schemas/position.ts';
import type { Member } from '../door/member.ts';
import type { LIMITS } from '../limits.ts';
import type { Board } from '../past/board.ts';
import type { Outbox } from '../wire/outbox.ts';
import type { StreamLimits } from './frames.ts';

/** The beginning of every partition: where one resumes from by time, it is not known yet. */
export const NOWHERE: Offsets = new Map();

/**
 * The board's position, lowered to what is true of one client: once it has read all frames queued
 * so far it has everything up to there. Pills that `latest` holds back are not among them.
 * @param pendingAfter what a resume that is being prepared goes on from
 * @param queuedIsLost the queue is dropped: only what was given to the socket counts
 */
export function positionOf(
  board: Pick<Board, 'epoch' | 'offsets' | 'position'>,
  outbox: Pick<Outbox, 'holdsPills' | 'lower'>,
  pendingAfter: Offsets | undefined,
  queuedIsLost: boolean,
): string {
  if (pendingAfter === undefined && !queuedIsLost && !outbox.holdsPills) return board.position();
  const offsets = new Map(board.offsets);
  if (pendingAfter !== undefined) lowerTo(pendingAfter, offsets);
  outbox.lower(offsets, queuedIsLost);
  return formatPosition(board.epoch, offsets);
}

function lowerTo(bound: Offsets, offsets: Map<number, number>): void {
  for (const [partition, offset] of offsets) {
    const until = bound.get(partition);
    if (until === undefined) offsets.delete(partition);
    else if (until < offset) offsets.set(partition, until);
  }
}

/** What `welcome` tells; it must be what really holds. */
export function toldLimits(
  member: Pick<Member, 'connectionsMax' | 'symbolsMax'>,
  limits: { readonly [L in keyof typeof LIMITS]: number },
): StreamLimits {
  return {
    connections: member.connectionsMax,
    symbols: Math.min(member.symbolsMax, limits.symbolsPerConnectionMax),
    frames_in_per_s: limits.framesInPerSecond,
    frame_in_bytes: limits.frameInBytesMax,
    queue_bytes: limits.queueBytesMax,
    resume_max_age_s: limits.resumeMaxAgeS,
  };
}
