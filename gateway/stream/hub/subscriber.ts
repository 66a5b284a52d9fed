import type { Mode, Subscription } from '../protocol/subscription.ts';
import type { Codec } from '../wire/codec.ts';
import type { Outbox } from '../wire/outbox.ts';
import type { PillBytes, PillFrame } from '../wire/pill-bytes.ts';

/** A connection in the hub; only the hub changes its fields. */
export type Subscriber = ReturnType<typeof createSubscriber>;

/** Subscribers to exactly `*` without a filter: their frames are built once and shared. */
export interface FanOutGroup {
  readonly codec: Codec;
  readonly mode: Mode;
  readonly backfill: boolean;
  readonly subscribers: Set<Subscriber>;
  pending: PillBytes[];
  lateSkipped: number;
}

/**
 * Creates a subscriber without subscriptions.
 * @param onOverflow called after a tick that left the outbox over its bound, or broken; must end
 *   the connection
 */
export function createSubscriber(outbox: Outbox, codec: Codec, onOverflow: () => void) {
  return {
    outbox,
    codec,
    /** Subscriptions to named symbols. */
    named: new Map<string, Subscription>(),
    /** The subscription to `*`. */
    wildcard: undefined as Subscription | undefined,
    /** Pills of its symbols that its filters rejected. */
    filtered: 0,
    /** Pills of the current tick, by mode. */
    all: [] as PillBytes[],
    latest: [] as PillBytes[],
    group: undefined as FanOutGroup | undefined,
    onOverflow,
  };
}

/** Whether the outbox is over its bound, or its socket dropped a frame. */
export function mustEnd({ outbox }: Subscriber): boolean {
  return outbox.broken || outbox.overflowed;
}

/** Pushes a frame that the hub does not build. */
export function pushFrame(subscriber: Subscriber, frame: Buffer): void {
  subscriber.outbox.push(frame);
  if (mustEnd(subscriber)) subscriber.onOverflow();
}

/** Pushes frames to an outbox; a blocked outbox holds back the pills of `latest` mode instead. */
export function deliver(outbox: Outbox, mode: Mode, frames: readonly PillFrame[]): void {
  for (const frame of frames) {
    if (mode === 'all' || outbox.isFlowing) outbox.push(frame.bytes, frame.pills);
    else for (const pill of frame.pills) outbox.hold(pill);
  }
}

/**
 * Delivers a subscriber's own pills of this tick, and empties its lists.
 * @param cut builds frames; must copy the list, which is reused
 */
export function deliverOwn(
  subscriber: Subscriber,
  cut: (pills: readonly PillBytes[]) => PillFrame[],
): void {
  const { outbox, all, latest } = subscriber;
  if (latest.length > 0 && all.length > 0 && outbox.isFlowing) {
    // Symbols of both modes share a frame: order matters only within a symbol.
    deliver(outbox, 'all', cut(all.concat(latest)));
  } else {
    if (all.length > 0) deliver(outbox, 'all', cut(all));
    if (latest.length > 0 && outbox.isFlowing) deliver(outbox, 'latest', cut(latest));
    else for (const pill of latest) outbox.hold(pill);
  }
  all.length = 0;
  latest.length = 0;
}
