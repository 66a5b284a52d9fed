import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { PillView } from '../../../domain/order/pill-columns.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import { passesFilter } from '../../../schemas/pill-filter.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Limits } from '../limits.ts';
import type { ReplayBuffer } from '../log/replay-buffer.ts';
import type { ResumeReason } from '../protocol/resume-reasons.ts';
import { ALL_SYMBOLS, type Subscription } from '../protocol/subscription.ts';
import type { Codec } from '../wire/codec.ts';
import type { FrameSource } from '../wire/outbox.ts';
import { encodePill, framePills, type PillBytes, withReplayed } from '../wire/pill-bytes.ts';
import type { LogPills } from './log-replay.ts';

/** The outcome of a resume request. */
export type ResumeOutcome =
  /** No resume was requested. */
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly reason: ResumeReason }
  | ResumePoint;

/** All pills after these offsets are in the replay buffer or in `logPills`, unless evicted since. */
export interface ResumePoint {
  readonly kind: 'ready';
  readonly after: Offsets;
  readonly notBefore: Micros;
  /** Pills read from the log for this request; valid in the same turn only. */
  readonly logPills?: LogPills;
}

/** The frames that follow a `subscribed` frame. */
export type ReplayPlan =
  /** No resume was requested: a snapshot, if wanted. */
  | { readonly recovered: null }
  /** Exactly the matching pills after the position, oldest first. */
  | {
      readonly recovered: true;
      readonly pills: readonly EffectivePill[];
      /** See `LogPills`; set if the log was read. */
      readonly hold: (() => () => void) | undefined;
    }
  /** The resume is refused as a whole, never in part: a fresh snapshot follows. */
  | { readonly recovered: false; readonly reason: ResumeReason };

export interface ReplayRequest {
  readonly outcome: ResumeOutcome;
  /** Symbols of this subscription; `*` is every symbol except test symbols and `named`. */
  readonly symbols: readonly string[];
  readonly named: ReadonlyMap<string, Subscription>;
  readonly subscription: Subscription;
}

/** @returns whether a pill matches a request */
export function matcherOf(
  { symbols, named, subscription }: Omit<ReplayRequest, 'outcome'>,
  notBefore: Micros,
): (pill: PillView) => boolean {
  const own = new Set(symbols);
  const isEvery = own.has(ALL_SYMBOLS);
  const isSubscribed = (symbol: string) =>
    isEvery ? !isTestSymbol(symbol) && !named.has(symbol) : own.has(symbol);
  return (pill) =>
    isSubscribed(pill.symbol) &&
    pill.received_at >= notBefore &&
    (!pill.backfill || subscription.backfill) &&
    !(pill.late && subscription.mode === 'latest') &&
    (subscription.filter === undefined || passesFilter(subscription.filter, pill));
}

/**
 * Selects the pills that a connection missed.
 * @param pillsMax a replay of more pills is refused: a slow reader would pin their memory
 */
export function planReplay(
  request: ReplayRequest,
  replayBuffer: ReplayBuffer,
  pillsMax: number,
): ReplayPlan {
  const { outcome } = request;
  if (outcome.kind === 'none') return { recovered: null };
  if (outcome.kind === 'refused') return { recovered: false, reason: outcome.reason };
  const { after, notBefore, logPills } = outcome;
  for (const [partition, offset] of after) {
    const known = Math.max(offset + 1, logPills?.until.get(partition) ?? 0);
    // The buffer has evicted pills since the resume was prepared.
    if ((replayBuffer.startOf(partition) ?? 0) > known) {
      return { recovered: false, reason: 'position_expired' };
    }
  }
  const matches = matcherOf(request, notBefore);
  const pills = replayBuffer.after(after, matches, pillsMax, logPills?.byPartition);
  if (pills === undefined) return { recovered: false, reason: 'too_many_missed' };
  return { recovered: true, pills, hold: logPills?.hold };
}

/**
 * Creates a replay as a source of bounded frames, built when there is room for them.
 * @param backfill the replay has backfill pills, so `prev` is null throughout
 */
export function createReplaySource(
  { pills, hold }: Extract<ReplayPlan, { recovered: true }>,
  backfill: boolean,
  codec: Codec,
  nowMicros: () => Micros,
  { frameOutBytesMax, heldRowBytes }: Limits,
): FrameSource {
  const seen = new Set<string>();
  let at = 0;
  return {
    heldBytes: pills.length * heldRowBytes,
    release: hold?.(),
    next() {
      if (at === pills.length) return undefined;
      const part: PillBytes[] = [];
      let bytes = 0;
      while (at < pills.length) {
        const pill = pills[at]!;
        // The pill before a symbol's first pill is not part of the replay.
        const isFirst = !pill.backfill && !seen.has(pill.symbol);
        const body = withReplayed(encodePill(pill, codec, !backfill && !isFirst));
        bytes += body.body.length + 1;
        if (bytes > frameOutBytesMax && part.length > 0) break;
        if (isFirst) seen.add(pill.symbol);
        part.push(body);
        at += 1;
      }
      return framePills(part, nowMicros(), Number.POSITIVE_INFINITY)[0]!.bytes;
    },
  };
}
