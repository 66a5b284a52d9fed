import { AVRO_CODEC } from '../wire/avro-codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';
import type { Lane, Seat } from './seat.ts';
import { EVERY_SYMBOL, type Subscription } from './subscription.ts';

/** Who wants what: each seat stands where a pill finds it without looking at all the others. */
export interface Roster {
  /** Eight of them: each codec and mode, with and without backfill. */
  readonly lanes: readonly Lane[];
  /** `*` with a filter, or beside named symbols: looked at one by one. */
  readonly mixed: ReadonlySet<Seat>;
  /** Seats that name this symbol. */
  namedBy(symbol: string): Iterable<Seat>;
  /** Replaces what the seat wanted of this symbol, or of `*`. */
  subscribe(seat: Seat, symbol: string, subscription: Subscription): void;
  /** @returns false when the seat had no such subscription. */
  unsubscribe(seat: Seat, symbol: string): boolean;
  /** Ends all of a seat's subscriptions. */
  leave(seat: Seat): void;
}

const NOBODY: readonly Seat[] = [];

/** Creates an empty roster. Memory: one entry for each seat and symbol it names. */
export function createRoster(): Roster {
  const named = new Map<string, Set<Seat>>();
  const lanes = createLanes();
  const mixed = new Set<Seat>();

  const place = (seat: Seat) => {
    seat.lane?.seats.delete(seat);
    seat.lane = undefined;
    mixed.delete(seat);
    const { star } = seat;
    if (star === undefined) return;
    if (star.filter !== undefined || seat.named.size > 0) mixed.add(seat);
    else {
      seat.lane = lanes.find(
        ({ codec, mode, backfill }) =>
          codec === seat.codec && mode === star.mode && backfill === star.backfill,
      )!;
      seat.lane.seats.add(seat);
    }
  };
  const addNamed = (seat: Seat, symbol: string, subscription: Subscription) => {
    seat.named.set(symbol, subscription);
    const seats = named.get(symbol);
    if (seats === undefined) named.set(symbol, new Set([seat]));
    else seats.add(seat);
  };
  const dropNamed = (seat: Seat, symbol: string) => {
    const seats = named.get(symbol);
    seats?.delete(seat);
    if (seats?.size === 0) named.delete(symbol);
    return seat.named.delete(symbol);
  };

  return {
    lanes,
    mixed,
    namedBy: (symbol) => named.get(symbol) ?? NOBODY,
    subscribe(seat, symbol, subscription) {
      if (symbol === EVERY_SYMBOL) seat.star = subscription;
      else addNamed(seat, symbol, subscription);
      place(seat);
    },
    unsubscribe(seat, symbol) {
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
    },
  };
}

function createLanes(): Lane[] {
  const lanes: Lane[] = [];
  for (const codec of [JSON_CODEC, AVRO_CODEC]) {
    for (const mode of ['all', 'latest'] as const) {
      for (const backfill of [false, true]) {
        lanes.push({ codec, mode, backfill, seats: new Set(), pending: [], lateSkipped: 0 });
      }
    }
  }
  return lanes;
}
