import { type Cursor, formatCursor, type Position } from '../../../schemas/position.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import { gapFrame } from '../live/frames.ts';
import { EVERY_SYMBOL } from '../live/subscription.ts';
import type { Board } from './board.ts';

/** A stretch of one partition that somebody did not get. */
export interface Missed {
  /** `*` is all symbols of the partition. */
  readonly symbol: string;
  readonly epoch: string;
  /** Exclusive; undefined is the partition's beginning. */
  readonly after: Cursor | undefined;
  /** Inclusive. */
  readonly until: Cursor;
}

export interface GapPlace {
  readonly board: Board;
  readonly partitionOf: (symbol: string) => number;
  /**
   * Whether resuming after an offset is promised. A position is the client's own word: without this
   * any of it would make history free from the log's beginning on.
   */
  readonly isPromised: (partition: number, after: number) => boolean;
  /** Signs that the account may fetch it without a call being counted. */
  readonly grant: (accountId: string, missed: Missed) => string;
}

/**
 * Frames that tell what is missing after a position, each with the REST call that fills it: one a
 * symbol, for `*` one a partition. The call is free where the position was young enough. None where nothing can be missing, nor for a position of another
 * log, after which nothing can be named.
 */
export function gapFrames(
  place: GapPlace,
  accountId: string,
  symbols: readonly string[],
  {
    position,
    reason,
    backfill,
  }: {
    readonly position: Position;
    readonly reason: NotRecovered;
    /** Asked for too: the last of it is not known by symbol, so the partition's end is named. */
    readonly backfill: boolean;
  },
): Buffer[] {
  const { board } = place;
  if (position.epoch !== board.epoch) return [];
  const frames: Buffer[] = [];
  const tell = (symbol: string, partition: number, last: number) => {
    const after = position.offsets.get(partition);
    if (after !== undefined && after >= last) return;
    const missed = {
      ...{ symbol, epoch: board.epoch, until: formatCursor(partition, last) },
      after: after === undefined ? undefined : formatCursor(partition, after),
    };
    const isFree = place.isPromised(partition, after ?? -1);
    const path = fillPath(missed, isFree ? place.grant(accountId, missed) : undefined);
    frames.push(gapFrame(missed, reason, { path, isFree }));
  };
  for (const symbol of symbols) {
    if (symbol === EVERY_SYMBOL) {
      for (const [partition, offset] of board.offsets) tell(symbol, partition, offset);
      continue;
    }
    const row = board.get(symbol);
    const partition = place.partitionOf(symbol);
    const last = backfill ? row && board.offsets.get(partition) : row?.lastOffset;
    if (last !== undefined && last !== null) tell(symbol, partition, last);
  }
  return frames;
}

function fillPath({ symbol, epoch, after, until }: Missed, grant: string | undefined): string {
  const query = new URLSearchParams({
    ...(symbol === EVERY_SYMBOL ? {} : { symbol }),
    epoch,
    ...(after === undefined ? {} : { after }),
    until,
    ...(grant === undefined ? {} : { grant }),
  });
  return `/api/pills?${query}`;
}
