import type { EffectivePill } from '../../../lib/order/judge.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { CHAOS_SYMBOL } from '../chaos/chaos-schedule.ts';
import { EncodedPill, framePills, type PillBytes } from '../wire/pill-bytes.ts';
import { createRoster, type Roster } from './roster.ts';
import { deliver, deliverOwn, type Lane, type Seat } from './seat.ts';
import { passes, type Subscription } from './subscription.ts';
import { createTicker, type TickerOptions } from './ticker.ts';

export interface HubOptions extends TickerOptions {
  readonly frameOutBytesMax: number;
  readonly nowMicros: () => Micros;
  /** Told of each tick: when it was sent, and each pill of it once. */
  readonly onTick?: (sentAt: Micros, pills: readonly EffectivePill[], deliveries: number) => void;
  /** A seat has named a symbol, or `*`. */
  readonly onSubscribed?: (seat: Seat, symbol: string) => void;
}

/** Who gets which pill. Order within a symbol is the log's. */
export interface Hub {
  /** Hands pills over, in the order of the log; they leave in this or the next tick. */
  publish(pills: readonly EffectivePill[]): void;
  /** Ends the tick: what was published is in the outboxes when this returns. */
  flush(): void;
  /** From the next published pill on. */
  subscribe(seat: Seat, symbol: string, subscription: Subscription): void;
  unsubscribe(seat: Seat, symbol: string): boolean;
  leave(seat: Seat): void;
  seatsNaming(symbol: string): Iterable<Seat>;
  /** Those who want `*`. */
  starSeats(): Iterable<Seat>;
  /** How far apart ticks are now, in ms: reading the log more often gets nobody a pill sooner. */
  spacingMs(): number;
}

/** What was published since the last flush, beside what waits in the lanes. */
interface Tick {
  /** Each pill that somebody gets, once. */
  pills: EffectivePill[];
  /** Seats that get pills of their own. */
  readonly seats: Set<Seat>;
}

/**
 * Creates a hub without seats. A pill is encoded once, when the first seat wants it; pills of one
 * tick are joined into frames, which the seats of a lane share. A seat whose outbox is over its
 * bound after a tick is told by `onOverflow`, when all others have theirs.
 */
export function createHub(options: HubOptions): Hub {
  const roster = createRoster();
  const tick: Tick = { pills: [], seats: new Set() };
  const isEmpty = () =>
    tick.pills.length === 0 && tick.seats.size === 0 && !roster.lanes.some(hasPending);

  const flush = () => {
    if (isEmpty()) return;
    const now = options.nowMicros();
    const { pills } = tick;
    tick.pills = [];
    const { deliveries, over } = send(roster.lanes, tick.seats, now, options.frameOutBytesMax);
    tick.seats.clear();
    ticker.ticked(deliveries);
    options.onTick?.(now, pills, deliveries);
    // Last, when all that was published is in the outboxes: the position told is then true.
    for (const seat of over) seat.onOverflow();
  };
  const ticker = createTicker(options, flush);

  return {
    publish(pills) {
      for (const pill of pills) route(pill, roster, tick);
      if (!isEmpty()) ticker.request();
    },
    flush,
    spacingMs: ticker.spacingMs,
    subscribe(seat, symbol, subscription) {
      flush();
      roster.subscribe(seat, symbol, subscription);
      options.onSubscribed?.(seat, symbol);
    },
    unsubscribe(seat, symbol) {
      flush();
      return roster.unsubscribe(seat, symbol);
    },
    leave(seat) {
      roster.leave(seat);
      tick.seats.delete(seat);
      seat.all.length = 0;
      seat.latest.length = 0;
    },
    seatsNaming: roster.namedBy,
    starSeats: () => [...roster.lanes.flatMap(({ seats }) => [...seats]), ...roster.mixed],
  };
}

/** Puts a pill where those who want it get it from at the next flush. */
function route(pill: EffectivePill, roster: Roster, tick: Tick): void {
  let encoded: EncodedPill | undefined;
  const encode = () => {
    if (encoded === undefined) {
      encoded = new EncodedPill(pill);
      // What is played is no pill of ours: it has no latency.
      if (pill.symbol !== CHAOS_SYMBOL) tick.pills.push(pill);
    }
    return encoded;
  };
  for (const seat of roster.namedBy(pill.symbol)) {
    if (offer(seat, seat.named.get(pill.symbol)!, pill, encode)) tick.seats.add(seat);
  }
  if (isTestSymbol(pill.symbol)) return;
  for (const lane of roster.lanes) {
    if (lane.seats.size === 0 || (pill.backfill && !lane.backfill)) continue;
    if (lane.mode === 'latest' && pill.late) lane.lateSkipped += 1;
    else lane.pending.push(encode().form(lane.codec, !lane.backfill));
  }
  for (const seat of roster.mixed) {
    if (seat.named.has(pill.symbol)) continue;
    if (offer(seat, seat.star!, pill, encode)) tick.seats.add(seat);
  }
}

/** Adds a pill to a seat's own. @returns false when its subscription does not let it through. */
function offer(
  seat: Seat,
  subscription: Subscription,
  pill: EffectivePill,
  encode: () => EncodedPill,
): boolean {
  if (pill.backfill && !subscription.backfill) return false;
  if (!passes(subscription.filter, pill)) {
    seat.filtered += 1;
    return false;
  }
  const latest = subscription.mode === 'latest';
  if (latest && pill.late) {
    seat.outbox.pillsSkipped += 1;
    return false;
  }
  const bytes = encode().form(seat.codec, !subscription.backfill);
  (latest ? seat.latest : seat.all).push(bytes);
  return true;
}

/** Sends what waits. @returns how many pills that was over all seats, and who is over the bound. */
function send(lanes: readonly Lane[], seats: Iterable<Seat>, now: Micros, frameBytesMax: number) {
  const cut = createCutter(now, frameBytesMax);
  const over: Seat[] = [];
  const settle = (seat: Seat) => {
    if (seat.outbox.broken || seat.outbox.overflowed) over.push(seat);
  };
  let deliveries = 0;
  for (const lane of lanes) {
    if (!hasPending(lane)) continue;
    const { pending, lateSkipped } = lane;
    lane.pending = [];
    lane.lateSkipped = 0;
    const frames = cut.joined(pending);
    deliveries += pending.length * lane.seats.size;
    for (const seat of lane.seats) {
      if (lateSkipped > 0) seat.outbox.pillsSkipped += lateSkipped;
      deliver(seat.outbox, lane.mode, frames);
      settle(seat);
    }
  }
  for (const seat of seats) {
    deliveries += seat.all.length + seat.latest.length;
    deliverOwn(seat, cut.own);
    settle(seat);
  }
  return { deliveries, over };
}

/** Makes the frames of one tick. */
function createCutter(sentAt: Micros, bytesMax: number) {
  const joined = (pills: readonly PillBytes[]) => framePills(pills, sentAt, bytesMax);
  // Most ticks hold one pill for a socket with few symbols: they share its frame too.
  const single = new Map<PillBytes, ReturnType<typeof framePills>>();
  const own = (pills: readonly PillBytes[]) => {
    if (pills.length > 1) return joined(pills.slice());
    const only = pills[0]!;
    let frames = single.get(only);
    if (frames === undefined) {
      frames = joined([only]);
      single.set(only, frames);
    }
    return frames;
  };
  return { joined, own };
}

function hasPending(lane: Lane): boolean {
  return lane.pending.length > 0 || lane.lateSkipped > 0;
}
