import type { EffectivePill } from '../../../domain/order/judge.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import { passesFilter } from '../../../schemas/pill-filter.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { CHAOS_SYMBOL, type Subscription } from '../protocol/subscription.ts';
import { EncodedPill, framePills, type PillBytes } from '../wire/pill-bytes.ts';
import { createFlushTicker, type TickerOptions } from './flush-ticker.ts';
import { deliver, deliverOwn, type FanOutGroup, mustEnd, type Subscriber } from './subscriber.ts';
import { createSubscribers, type Subscribers } from './subscribers.ts';

export interface HubOptions extends TickerOptions {
  readonly frameOutBytesMax: number;
  readonly nowMicros: () => Micros;
  /** Called after each tick with its send time and each delivered pill once. */
  readonly onTick?: (sentAt: Micros, pills: readonly EffectivePill[], deliveries: number) => void;
  /** Called when a subscriber has subscribed to a symbol, or to `*`. */
  readonly onSubscribed?: (subscriber: Subscriber, symbol: string) => void;
}

export type Hub = ReturnType<typeof createHub>;

/** The pills published since the last flush, besides those pending in the groups. */
interface Tick {
  /** Each pill with at least one subscriber, once. */
  pills: EffectivePill[];
  /** Subscribers with pills of their own. */
  readonly subscribers: Set<Subscriber>;
}

/**
 * Creates the hub, which routes pills to subscribers, each symbol in the order of the log. A pill is
 * encoded once, for its first subscriber; the pills of a tick are joined into frames, which the
 * subscribers of a group share. `onOverflow` of a subscriber whose outbox exceeds its bound is
 * called after all others have their pills.
 */
export function createHub(options: HubOptions) {
  const index = createSubscribers();
  const tick: Tick = { pills: [], subscribers: new Set() };
  const isEmpty = () =>
    tick.pills.length === 0 && tick.subscribers.size === 0 && !index.groups.some(hasPending);

  const flush = () => {
    if (isEmpty()) return;
    const now = options.nowMicros();
    const { pills } = tick;
    tick.pills = [];
    const cut = createCutter(now, options.frameOutBytesMax);
    const { deliveries, over } = send(index.groups, tick.subscribers, cut);
    tick.subscribers.clear();
    ticker.ticked(deliveries);
    options.onTick?.(now, pills, deliveries);
    // Last, when all published pills are in the outboxes, so that the reported position is correct.
    for (const subscriber of over) subscriber.onOverflow();
  };
  const ticker = createFlushTicker(options, flush);

  return {
    /** Takes pills in the order of the log; they leave in this or the next tick. */
    publish(pills: readonly EffectivePill[]) {
      for (const pill of pills) route(pill, index, tick);
      if (!isEmpty()) ticker.request();
    },
    /** Ends the tick: all published pills are in the outboxes when this returns. */
    flush,
    /** The current distance between ticks: reading the log more often delivers nothing sooner. */
    spacingMs: ticker.spacingMs,
    /** Takes effect with the next published pill. */
    subscribe(subscriber: Subscriber, symbol: string, subscription: Subscription) {
      flush();
      index.subscribe(subscriber, symbol, subscription);
      options.onSubscribed?.(subscriber, symbol);
    },
    unsubscribe(subscriber: Subscriber, symbol: string) {
      flush();
      return index.unsubscribe(subscriber, symbol);
    },
    remove(subscriber: Subscriber) {
      index.remove(subscriber);
      tick.subscribers.delete(subscriber);
      subscriber.all.length = 0;
      subscriber.latest.length = 0;
    },
    subscribersNaming: index.naming,
    /** Subscribers to `*`. */
    wildcardSubscribers: () => [
      ...index.groups.flatMap(({ subscribers }) => [...subscribers]),
      ...index.individuals,
    ],
  };
}

/** Queues a pill for its subscribers until the next flush. */
function route(pill: EffectivePill, index: Subscribers, tick: Tick): void {
  let encoded: EncodedPill | undefined;
  const encode = () => {
    if (encoded === undefined) {
      encoded = new EncodedPill(pill);
      // Chaos-feed pills are synthetic, so they carry no latency.
      if (pill.symbol !== CHAOS_SYMBOL) tick.pills.push(pill);
    }
    return encoded;
  };
  for (const subscriber of index.naming(pill.symbol)) {
    if (offer(subscriber, subscriber.named.get(pill.symbol)!, pill, encode)) {
      tick.subscribers.add(subscriber);
    }
  }
  if (isTestSymbol(pill.symbol)) return;
  for (const group of index.groups) {
    if (group.subscribers.size === 0 || (pill.backfill && !group.backfill)) continue;
    if (group.mode === 'latest' && pill.late) group.lateSkipped += 1;
    else group.pending.push(encode().form(group.codec, !group.backfill));
  }
  for (const subscriber of index.individuals) {
    if (subscriber.named.has(pill.symbol)) continue;
    if (offer(subscriber, subscriber.wildcard!, pill, encode)) tick.subscribers.add(subscriber);
  }
}

/** Adds a pill to the subscriber's own. @returns false if its subscription excludes the pill. */
function offer(
  subscriber: Subscriber,
  subscription: Subscription,
  pill: EffectivePill,
  encode: () => EncodedPill,
): boolean {
  if (pill.backfill && !subscription.backfill) return false;
  if (subscription.filter !== undefined && !passesFilter(subscription.filter, pill)) {
    subscriber.filtered += 1;
    return false;
  }
  const latest = subscription.mode === 'latest';
  if (latest && pill.late) {
    subscriber.outbox.pillsSkipped += 1;
    return false;
  }
  const bytes = encode().form(subscriber.codec, !subscription.backfill);
  (latest ? subscriber.latest : subscriber.all).push(bytes);
  return true;
}

/** Sends all pending pills. @returns the number of deliveries, and the subscribers over the bound */
function send(
  groups: readonly FanOutGroup[],
  subscribers: Iterable<Subscriber>,
  cut: ReturnType<typeof createCutter>,
) {
  const over: Subscriber[] = [];
  const checkBound = (subscriber: Subscriber) => {
    if (mustEnd(subscriber)) over.push(subscriber);
  };
  let deliveries = 0;
  for (const group of groups) {
    if (!hasPending(group)) continue;
    const { pending, lateSkipped } = group;
    group.pending = [];
    group.lateSkipped = 0;
    const frames = cut.joined(pending);
    deliveries += pending.length * group.subscribers.size;
    for (const subscriber of group.subscribers) {
      if (lateSkipped > 0) subscriber.outbox.pillsSkipped += lateSkipped;
      deliver(subscriber.outbox, group.mode, frames);
      checkBound(subscriber);
    }
  }
  for (const subscriber of subscribers) {
    deliveries += subscriber.all.length + subscriber.latest.length;
    deliverOwn(subscriber, cut.own);
    checkBound(subscriber);
  }
  return { deliveries, over };
}

/** Builds the frames of one tick. */
function createCutter(sentAt: Micros, bytesMax: number) {
  const joined = (pills: readonly PillBytes[]) => framePills(pills, sentAt, bytesMax);
  // In most ticks a socket with few symbols gets a single pill; such sockets share its frame.
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

function hasPending(group: FanOutGroup): boolean {
  return group.pending.length > 0 || group.lateSkipped > 0;
}
