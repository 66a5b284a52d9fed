import type { Board } from './board.ts';
import type { FrameSource } from './outbox.ts';
import type { ResumeRequest } from './protocol.ts';

/** Why a position cannot be resumed from; `reason` of `subscribed`. */
export type NotRecovered = 'epoch_unknown' | 'resume_not_available';

/** What follows a `subscribed` frame. */
export type Replay =
  /** Nothing was asked for: a snapshot, if wanted. */
  | { readonly recovered: null }
  /** `frames` holds exactly what came after the position, `count` pills, marked replayed. */
  | { readonly recovered: true; readonly count: number; readonly frames: FrameSource | undefined }
  /** It cannot be had; never partial: a fresh snapshot follows. */
  | { readonly recovered: false; readonly reason: NotRecovered };

/**
 * Plans how a connection goes on from where it was. Pills that were sent are not kept, so only a
 * client that missed nothing is recovered; any other is told why not, and begins anew.
 */
export function planReplay(asked: ResumeRequest | undefined, board: Board): Replay {
  if (asked === undefined) return { recovered: null };
  if (asked.kind === 'since') return { recovered: false, reason: 'resume_not_available' };
  const { epoch, offsets } = asked.position;
  if (epoch !== board.epoch) return { recovered: false, reason: 'epoch_unknown' };
  const missedNothing =
    offsets.size === board.offsets.size &&
    [...offsets].every(([partition, offset]) => board.offsets.get(partition) === offset);
  if (missedNothing) return { recovered: true, count: 0, frames: undefined };
  return { recovered: false, reason: 'resume_not_available' };
}
