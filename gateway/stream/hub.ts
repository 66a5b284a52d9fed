import type { EffectivePill } from '../../lib/order/judge.ts';
import { isTestSymbol } from '../../schemas/pill.ts';
import { formatTimestamp, type Micros } from '../../schemas/timestamp.ts';
import type { Outbox } from './outbox.ts';
import { encodePill, framePills, type PillBytes, type PillFrame } from './pill-bytes.ts';
import { EVERY_SYMBOL, passes, type Subscription } from './subscription.ts';

/** A connection's place in the hub; the hub alone changes what is not readonly. */
export interface Seat {
  readonly outbox: Outbox;
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
interface Lane {
  readonly mode: Subscription['mode'];
  readonly backfill: boolean;
  readonly seats: Set<Seat>;
  pending: PillBytes[];
  lateSkipped: number;
}

export interface HubOptions {
  readonly frameOutBytesMax: number;
  readonly nowMicros: () => Micros;
  /** Monotonic, in ms. */
  readonly nowMs: () => number;
  /** Runs the next tick after `delayMs`; 0 is the next turn of the event loop. */
  readonly schedule: (tick: () => void, delayMs: number) => void;
  /** Told of each tick: when it was sent, and each pill of it once. */
  readonly onTick?: (sentAt: Micros, pills: readonly PillBytes[], deliveries: number) => void;
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
}

export function createSeat(outbox: Outbox, onOverflow: () => void): Seat {
  return {
    outbox,
    named: new Map(),
    star: undefined,
    filtered: 0,
    all: [],
    latest: [],
    lane: undefined,
    onOverflow,
  };
}

/**
 * Ticks are spaced only when there is much to send: a syscall a frame is what costs. Below 50,000
 * deliveries a second each turn of the event loop is a tick; DESIGN section 13 has the bounds.
 */
export const PACES = [
  { deliveriesPerS: 200_000, spacingMs: 10 },
  { deliveriesPerS: 50_000, spacingMs: 5 },
] as const;
const RATE_WINDOW_MS = 250;

export function createHub(options: HubOptions): Hub {
  const named = new Map<string, Set<Seat>>();
  const lanes: Lane[] = [];
  for (const mode of ['all', 'latest'] as const) {
    for (const backfill of [false, true]) {
      lanes.push({ mode, backfill, seats: new Set(), pending: [], lateSkipped: 0 });
    }
  }
  /** `*` with a filter, or beside named symbols: looked at one by one. */
  const mixed = new Set<Seat>();
  const dirty = new Set<Seat>();
  let ticked: PillBytes[] = [];
  let scheduled = false;
  let lastTickMs = Number.NEGATIVE_INFINITY;
  const rate = createRate(options.nowMs);

  const offer = (
    seat: Seat,
    subscription: Subscription,
    pill: EffectivePill,
    encode: () => ReturnType<typeof encodePill>,
  ) => {
    if (pill.backfill && !subscription.backfill) return;
    if (!passes(subscription.filter, pill)) {
      seat.filtered += 1;
      return;
    }
    const latest = subscription.mode === 'latest';
    if (latest && pill.late) {
      seat.outbox.pillsSkipped += 1;
      return;
    }
    const encoded = encode();
    const bytes = subscription.backfill ? encoded.withBackfill : encoded.live;
    (latest ? seat.latest : seat.all).push(bytes);
    dirty.add(seat);
  };

  const publishOne = (pill: EffectivePill) => {
    let encoded: ReturnType<typeof encodePill> | undefined;
    const encode = () => {
      if (encoded === undefined) {
        encoded = encodePill(pill);
        ticked.push(encoded.live);
      }
      return encoded;
    };
    for (const seat of named.get(pill.symbol) ?? []) {
      offer(seat, seat.named.get(pill.symbol)!, pill, encode);
    }
    if (isTestSymbol(pill.symbol)) return;
    for (const lane of lanes) {
      if (lane.seats.size === 0 || (pill.backfill && !lane.backfill)) continue;
      if (lane.mode === 'latest' && pill.late) lane.lateSkipped += 1;
      else lane.pending.push(lane.backfill ? encode().withBackfill : encode().live);
    }
    for (const seat of mixed) {
      if (!seat.named.has(pill.symbol)) offer(seat, seat.star!, pill, encode);
    }
  };

  const flush = () => {
    if (dirty.size === 0 && ticked.length === 0 && !lanes.some(hasPending)) return;
    const now = options.nowMicros();
    const sentAt = formatTimestamp(now);
    const cut = (pills: readonly PillBytes[]) =>
      framePills(pills, sentAt, options.frameOutBytesMax);
    // Most ticks hold one pill for a socket with few symbols: they share its frame too.
    const single = new Map<PillBytes, PillFrame[]>();
    const cutOwn = (pills: readonly PillBytes[]) => {
      if (pills.length > 1) return cut(pills.slice());
      const only = pills[0]!;
      let frames = single.get(only);
      if (frames === undefined) {
        frames = cut([only]);
        single.set(only, frames);
      }
      return frames;
    };
    let deliveries = 0;
    const over: Seat[] = [];
    const settleSeat = (seat: Seat) => {
      if (seat.outbox.broken || seat.outbox.overflowed) over.push(seat);
    };
    for (const lane of lanes) {
      if (!hasPending(lane)) continue;
      const { pending, lateSkipped } = lane;
      lane.pending = [];
      lane.lateSkipped = 0;
      const frames = cut(pending);
      deliveries += pending.length * lane.seats.size;
      for (const seat of lane.seats) {
        if (lateSkipped > 0) seat.outbox.pillsSkipped += lateSkipped;
        deliver(seat.outbox, lane.mode, frames);
        settleSeat(seat);
      }
    }
    for (const seat of dirty) {
      deliveries += seat.all.length + seat.latest.length;
      deliverOwn(seat, cutOwn);
      settleSeat(seat);
    }
    dirty.clear();
    const pills = ticked;
    ticked = [];
    lastTickMs = options.nowMs();
    rate.add(deliveries);
    options.onTick?.(now, pills, deliveries);
    // Last, when all that was published is in the outboxes: the position told is then true.
    for (const seat of over) seat.onOverflow();
  };

  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    const perS = rate.perS();
    const spacing = PACES.find((pace) => perS >= pace.deliveriesPerS)?.spacingMs ?? 0;
    // A whole ms less, since a timer fires up to one late.
    const wait = Math.max(0, Math.floor(lastTickMs + spacing - 1 - options.nowMs()));
    options.schedule(() => {
      scheduled = false;
      flush();
    }, wait);
  };

  const place = (seat: Seat) => {
    seat.lane?.seats.delete(seat);
    seat.lane = undefined;
    mixed.delete(seat);
    const { star } = seat;
    if (star === undefined) return;
    if (star.filter !== undefined || seat.named.size > 0) mixed.add(seat);
    else {
      seat.lane = lanes.find((l) => l.mode === star.mode && l.backfill === star.backfill)!;
      seat.lane.seats.add(seat);
    }
  };

  const dropNamed = (seat: Seat, symbol: string) => {
    const seats = named.get(symbol);
    seats?.delete(seat);
    if (seats?.size === 0) named.delete(symbol);
    return seat.named.delete(symbol);
  };

  return {
    publish(pills) {
      for (const pill of pills) publishOne(pill);
      if (ticked.length > 0 || dirty.size > 0 || lanes.some(hasPending)) schedule();
    },
    flush,
    subscribe(seat, symbol, subscription) {
      flush();
      if (symbol === EVERY_SYMBOL) seat.star = subscription;
      else {
        seat.named.set(symbol, subscription);
        let seats = named.get(symbol);
        if (seats === undefined) {
          seats = new Set();
          named.set(symbol, seats);
        }
        seats.add(seat);
      }
      place(seat);
    },
    unsubscribe(seat, symbol) {
      flush();
      let had: boolean;
      if (symbol === EVERY_SYMBOL) {
        had = seat.star !== undefined;
        seat.star = undefined;
      } else had = dropNamed(seat, symbol);
      place(seat);
      return had;
    },
    leave(seat) {
      for (const symbol of [...seat.named.keys()]) dropNamed(seat, symbol);
      seat.star = undefined;
      place(seat);
      dirty.delete(seat);
      seat.all.length = 0;
      seat.latest.length = 0;
    },
  };
}

function hasPending(lane: Lane): boolean {
  return lane.pending.length > 0 || lane.lateSkipped > 0;
}

function deliver(outbox: Outbox, mode: Subscription['mode'], frames: readonly PillFrame[]): void {
  if (mode === 'all') {
    for (const frame of frames) outbox.push(frame.bytes, frame.pills);
    return;
  }
  for (const frame of frames) {
    if (outbox.isFlowing) outbox.push(frame.bytes, frame.pills);
    else for (const pill of frame.pills) outbox.hold(pill);
  }
}

function deliverOwn(seat: Seat, cut: (pills: readonly PillBytes[]) => PillFrame[]): void {
  const { outbox, all, latest } = seat;
  if (latest.length > 0 && all.length > 0 && outbox.isFlowing) {
    // Symbols of both modes in one frame: order counts within a symbol only.
    const both = all.concat(latest);
    deliver(outbox, 'all', cut(both));
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

/** Events a second over the last whole window. */
function createRate(nowMs: () => number) {
  let windowStart = nowMs();
  let count = 0;
  let last = 0;
  const roll = () => {
    const now = nowMs();
    const elapsed = now - windowStart;
    if (elapsed < RATE_WINDOW_MS) return;
    last = (count * 1000) / elapsed;
    count = 0;
    windowStart = now;
  };
  return {
    add(events: number) {
      roll();
      count += events;
    },
    perS() {
      roll();
      return last;
    },
  };
}
