import type { Codec } from '../wire/codec.ts';
import type { Outbox } from '../wire/outbox.ts';
import type { PillBytes, PillFrame } from '../wire/pill-bytes.ts';
import type { Mode, Subscription } from './subscription.ts';

/** A connection's place in the hub; the hub alone changes what is not readonly. */
export interface Seat {
  readonly outbox: Outbox;
  /** What its pills are encoded with. */
  readonly codec: Codec;
  readonly named: Map<string, Subscription>;
  star: Subscription | undefined;
  /** Pills of its symbols that its filters kept away. */
  filtered: number;
  /** Pills of this tick, by mode. */
  readonly all: PillBytes[];
  readonly latest: PillBytes[];
  lane: Lane | undefined;
  /** Called after a tick in which its outbox went over the bound or broke. */
  onOverflow(): void;
}

/** Connections that want exactly `*` without a filter: what they get is joined once for all. */
export interface Lane {
  readonly codec: Codec;
  readonly mode: Mode;
  readonly backfill: boolean;
  readonly seats: Set<Seat>;
  pending: PillBytes[];
  lateSkipped: number;
}

/**
 * Creates the place of a connection that has subscribed to nothing yet.
 * @param onOverflow called after a tick that left the outbox over its bound, or broken; must end
 *   the connection
 */
export function createSeat(outbox: Outbox, codec: Codec, onOverflow: () => void): Seat {
  return {
    outbox,
    codec,
    named: new Map(),
    star: undefined,
    filtered: 0,
    all: [],
    latest: [],
    lane: undefined,
    onOverflow,
  };
}

/** Gives frames to an outbox; in `latest` mode one that is blocked holds their pills instead. */
export function deliver(outbox: Outbox, mode: Mode, frames: readonly PillFrame[]): void {
  for (const frame of frames) {
    if (mode === 'all' || outbox.isFlowing) outbox.push(frame.bytes, frame.pills);
    else for (const pill of frame.pills) outbox.hold(pill);
  }
}

/**
 * Gives a seat's own pills of this tick to its outbox, and empties its lists.
 * @param cut makes frames; must copy the list, which is reused
 */
export function deliverOwn(seat: Seat, cut: (pills: readonly PillBytes[]) => PillFrame[]): void {
  const { outbox, all, latest } = seat;
  if (latest.length > 0 && all.length > 0 && outbox.isFlowing) {
    // Symbols of both modes in one frame: order counts within a symbol only.
    deliver(outbox, 'all', cut(all.concat(latest)));
  } else {
    if (all.length > 0) deliver(outbox, 'all', cut(all));
    if (latest.length > 0) {
      if (outbox.isFlowing) deliver(outbox, 'latest', cut(latest));
      else for (const pill of latest) outbox.hold(pill);
    }
  }
  all.length = 0;
  latest.length = 0;
}
