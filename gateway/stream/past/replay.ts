import type { EffectivePill } from '../../../lib/order/judge.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import { EVERY_SYMBOL, passes, type Subscription } from '../live/subscription.ts';
import type { Codec } from '../wire/codec.ts';
import type { FrameSource } from '../wire/outbox.ts';
import { encodePill, framePills, type PillBytes, withReplayed } from '../wire/pill-bytes.ts';
import type { Backlog } from './backlog.ts';
import type { Reached } from './reached.ts';

/** What follows a `subscribed` frame. */
export type Replay =
  /** Nothing was asked for: a snapshot, if wanted. */
  | { readonly recovered: null }
  /** Exactly what came after the position and matches, oldest first. */
  | {
      readonly recovered: true;
      readonly pills: readonly EffectivePill[];
      /** See `LogPills`; where the log was read. */
      readonly hold: (() => () => void) | undefined;
    }
  /** It cannot be had; never partial: a fresh snapshot follows. */
  | { readonly recovered: false; readonly reason: NotRecovered };

/** What a connection asks to be given again. */
export interface ReplayWish {
  readonly reached: Reached;
  /** Those that this subscription is for; `*` is every one but test symbols and `named`. */
  readonly symbols: readonly string[];
  readonly named: ReadonlyMap<string, Subscription>;
  readonly subscription: Subscription;
}

/** Whether a pill is one of those that a wish is for. */
export function matcherOf(
  { symbols, named, subscription }: Omit<ReplayWish, 'reached'>,
  notBefore: Micros,
): (pill: EffectivePill) => boolean {
  const own = new Set(symbols);
  const isEvery = own.has(EVERY_SYMBOL);
  const wants = (symbol: string) =>
    isEvery ? !isTestSymbol(symbol) && !named.has(symbol) : own.has(symbol);
  return (pill) =>
    wants(pill.symbol) &&
    pill.received_at >= notBefore &&
    (!pill.backfill || subscription.backfill) &&
    !(pill.late && subscription.mode === 'latest') &&
    passes(subscription.filter, pill);
}

/**
 * Picks what a connection missed. @param pillsMax more than these are refused: they would pin the
 * memory of a slow reader
 */
export function planReplay(wish: ReplayWish, backlog: Backlog, pillsMax: number): Replay {
  const { reached } = wish;
  if (reached.kind === 'nothing') return { recovered: null };
  if (reached.kind === 'refused') return { recovered: false, reason: reached.reason };
  const { after, notBefore, past } = reached;
  for (const [partition, offset] of after) {
    const known = Math.max(offset + 1, past?.until.get(partition) ?? 0);
    // Forgotten since it was reached.
    if ((backlog.startOf(partition) ?? 0) > known) {
      return { recovered: false, reason: 'position_expired' };
    }
  }
  const pills = backlog.after(after, matcherOf(wish, notBefore), pillsMax, past?.byPartition);
  if (pills === undefined) return { recovered: false, reason: 'too_many_missed' };
  return { recovered: true, pills, hold: past?.hold };
}

export interface ReplaySourceOptions {
  readonly pills: readonly EffectivePill[];
  readonly hold: (() => () => void) | undefined;
  /** `prev` is null throughout for those who asked for backfill. */
  readonly backfill: boolean;
  readonly codec: Codec;
  readonly nowMicros: () => Micros;
  readonly frameBytesMax: number;
  readonly heldRowBytes: number;
}

/** A replay as frames below a size, made when there is room for them. */
export function createReplaySource(options: ReplaySourceOptions): FrameSource {
  const { pills, backfill, codec, nowMicros, frameBytesMax } = options;
  const seen = new Set<string>();
  let at = 0;
  return {
    heldBytes: pills.length * options.heldRowBytes,
    release: options.hold?.(),
    next() {
      if (at === pills.length) return undefined;
      const part: PillBytes[] = [];
      let bytes = 0;
      while (at < pills.length) {
        const pill = pills[at]!;
        // What came before a symbol's first pill here is not part of this replay.
        const isFirst = !pill.backfill && !seen.has(pill.symbol);
        const body = withReplayed(encodePill(pill, codec, !backfill && !isFirst));
        bytes += body.body.length + 1;
        if (bytes > frameBytesMax && part.length > 0) break;
        if (isFirst) seen.add(pill.symbol);
        part.push(body);
        at += 1;
      }
      return framePills(part, nowMicros(), Number.POSITIVE_INFINITY)[0]!.bytes;
    },
  };
}
