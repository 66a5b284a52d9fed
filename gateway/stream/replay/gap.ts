import type { GrantedRange } from '../../../domain/access/gap-fill-grant.ts';
import { formatCursor, type Position } from '../../../schemas/position.ts';
import type { LatestPills } from '../log/latest-pills.ts';
import type { ResumeReason } from '../protocol/resume-reasons.ts';
import { gapFrame } from '../protocol/server-frames.ts';
import { ALL_SYMBOLS } from '../protocol/subscription.ts';

/** A span of one partition that a client did not get. */
type MissedSpan = Omit<GrantedRange, 'accountId'>;

export interface GapDeps {
  readonly latestPills: LatestPills;
  readonly partitionOf: (symbol: string) => number;
  /**
   * Whether a resume after an offset is promised. Clients choose the positions they send: without
   * this check any client could get the whole log for free.
   */
  readonly isInResumeWindow: (partition: number, after: number) => boolean;
  /** Signs a grant that lets the account fetch the span without using its quota. */
  readonly grant: (accountId: string, missed: MissedSpan) => string;
}

/**
 * Builds the frames that name the pills missing after a position, each with the REST call that
 * returns them: one per symbol, for `*` one per partition. The call is free if the position lies in
 * the resume window. There are no frames for symbols without missing pills, nor for a position of
 * another log.
 */
export function gapFrames(
  deps: GapDeps,
  accountId: string,
  symbols: readonly string[],
  resume: {
    readonly position: Position;
    readonly reason: ResumeReason;
    readonly backfill: boolean;
  },
): Buffer[] {
  const { latestPills } = deps;
  const { epoch } = latestPills;
  const { position, reason, backfill } = resume;
  if (position.epoch !== epoch) return [];
  const frames: Buffer[] = [];
  const add = (symbol: string, partition: number, last: number) => {
    const after = position.offsets.get(partition);
    if (after !== undefined && after >= last) return;
    const missed = {
      symbol,
      epoch,
      until: formatCursor(partition, last),
      after: after === undefined ? undefined : formatCursor(partition, after),
    };
    const isFree = deps.isInResumeWindow(partition, after ?? -1);
    const path = fillPath(missed, isFree ? deps.grant(accountId, missed) : undefined);
    frames.push(gapFrame(missed, reason, { path, isFree }));
  };
  for (const symbol of symbols) {
    if (symbol === ALL_SYMBOLS) {
      for (const [partition, offset] of latestPills.offsets) add(symbol, partition, offset);
      continue;
    }
    const row = latestPills.get(symbol);
    const partition = deps.partitionOf(symbol);
    // The last backfill pill of a symbol is not known, so the end of the partition is named.
    const last = backfill ? row && latestPills.offsets.get(partition) : row?.lastOffset;
    if (last !== undefined && last !== null) add(symbol, partition, last);
  }
  return frames;
}

function fillPath({ symbol, epoch, after, until }: MissedSpan, grant: string | undefined): string {
  const query = new URLSearchParams({
    ...(symbol === ALL_SYMBOLS ? {} : { symbol }),
    epoch,
    ...(after === undefined ? {} : { after }),
    until,
    ...(grant === undefined ? {} : { grant }),
  });
  return `/api/pills?${query}`;
}
