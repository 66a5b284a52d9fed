import type { EffectivePill } from '../../../lib/order/judge.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import { EVERY_SYMBOL, passes, type Subscription } from '../live/subscription.ts';
import type { Codec } from '../wire/codec.ts';
import type { FrameSource } from '../wire/outbox.ts';
import { encodePill, framePills, type PillBytes, withReplayed } from '../wire/pill-bytes.ts';
import type { Backlog } from './backlog.ts';
import type { Reached } from './resume.ts';

/** What follows a `subscribed` frame. */
export type Replay =
  /** Nothing was asked for: a snapshot, if wanted. */
  | { readonly recovered: null }
  /** Exactly what came after the position and matches, oldest first. */
  | { readonly recovered: true; readonly pills: readonly EffectivePill[] }
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

/**
 * Picks what a connection missed. @param pillsMax more than these are refused: they would pin the
 * memory of a slow reader
 */
export function planReplay(wish: ReplayWish, backlog: Backlog, pillsMax: number): Replay {
  const { reached, subscription } = wish;
  if (reached.kind === 'nothing') return { recovered: null };
  if (reached.kind === 'refused') return { recovered: false, reason: reached.reason };
  for (const [partition, offset] of reached.after) {
    // Forgotten since it was reached.
    if ((backlog.startOf(partition) ?? 0) > offset + 1) {
      return { recovered: false, reason: 'position_expired' };
    }
  }
  const symbols = new Set(wish.symbols);
  const isEvery = symbols.has(EVERY_SYMBOL);
  const wants = (symbol: string) =>
    isEvery ? !isTestSymbol(symbol) && !wish.named.has(symbol) : symbols.has(symbol);
  const matches = (pill: EffectivePill) =>
    wants(pill.symbol) &&
    pill.received_at >= reached.notBefore &&
    (!pill.backfill || subscription.backfill) &&
    !(pill.late && subscription.mode === 'latest') &&
    passes(subscription.filter, pill);
  const pills = backlog.after(reached.after, matches, pillsMax);
  if (pills === undefined) return { recovered: false, reason: 'too_many_missed' };
  return { recovered: true, pills };
}

export interface ReplaySourceOptions {
  readonly pills: readonly EffectivePill[];
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
