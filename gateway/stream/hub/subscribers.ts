import { ALL_SYMBOLS, type Subscription } from '../protocol/subscription.ts';
import { AVRO_CODEC } from '../wire/avro-codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';
import type { FanOutGroup, Subscriber } from './subscriber.ts';

export type Subscribers = ReturnType<typeof createSubscribers>;

const NONE: readonly Subscriber[] = [];

/** Creates an empty index of subscriptions. Memory: one entry for each subscriber and its symbol. */
export function createSubscribers() {
  const named = new Map<string, Set<Subscriber>>();
  const groups = createGroups();
  const individuals = new Set<Subscriber>();

  const regroup = (subscriber: Subscriber) => {
    subscriber.group?.subscribers.delete(subscriber);
    subscriber.group = undefined;
    individuals.delete(subscriber);
    const { wildcard } = subscriber;
    if (wildcard === undefined) return;
    if (wildcard.filter !== undefined || subscriber.named.size > 0) individuals.add(subscriber);
    else {
      subscriber.group = groups.find(
        ({ codec, mode, backfill }) =>
          codec === subscriber.codec && mode === wildcard.mode && backfill === wildcard.backfill,
      )!;
      subscriber.group.subscribers.add(subscriber);
    }
  };
  const addNamed = (subscriber: Subscriber, symbol: string, subscription: Subscription) => {
    subscriber.named.set(symbol, subscription);
    const subscribers = named.get(symbol);
    if (subscribers === undefined) named.set(symbol, new Set([subscriber]));
    else subscribers.add(subscriber);
  };
  const dropNamed = (subscriber: Subscriber, symbol: string) => {
    const subscribers = named.get(symbol);
    subscribers?.delete(subscriber);
    if (subscribers?.size === 0) named.delete(symbol);
    return subscriber.named.delete(symbol);
  };

  return {
    /** Eight groups: each codec and mode, with and without backfill. */
    groups,
    /** `*` with a filter, or in addition to named symbols: each is visited for every pill. */
    individuals,
    /** Subscribers that name this symbol. */
    naming: (symbol: string): Iterable<Subscriber> => named.get(symbol) ?? NONE,
    /** Replaces the subscription to the symbol, or to `*`. */
    subscribe(subscriber: Subscriber, symbol: string, subscription: Subscription) {
      if (symbol === ALL_SYMBOLS) subscriber.wildcard = subscription;
      else addNamed(subscriber, symbol, subscription);
      regroup(subscriber);
    },
    /** @returns false if there was no such subscription. */
    unsubscribe(subscriber: Subscriber, symbol: string): boolean {
      const isAll = symbol === ALL_SYMBOLS;
      const had = isAll ? subscriber.wildcard !== undefined : dropNamed(subscriber, symbol);
      if (isAll) subscriber.wildcard = undefined;
      regroup(subscriber);
      return had;
    },
    /** Ends all subscriptions of a subscriber. */
    remove(subscriber: Subscriber) {
      for (const symbol of [...subscriber.named.keys()]) dropNamed(subscriber, symbol);
      subscriber.wildcard = undefined;
      regroup(subscriber);
    },
  };
}

function createGroups(): FanOutGroup[] {
  return [JSON_CODEC, AVRO_CODEC].flatMap((codec) =>
    (['all', 'latest'] as const).flatMap((mode) =>
      [false, true].map((backfill) => {
        return { codec, mode, backfill, subscribers: new Set(), pending: [], lateSkipped: 0 };
      }),
    ),
  );
}
