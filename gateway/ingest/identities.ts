import type { Pill } from '../../schemas/pill.ts';

/** A pill that this process has sent to the log. */
export interface KnownPill {
  readonly identity: string;
  readonly pill: Pill;
  /** Position in the log; the offset is -1 until the log acknowledges. */
  partition: number;
  offset: number;
  /** Each is called once, with whether the log acknowledged the pill. */
  waiters: ((isStored: boolean) => void)[] | undefined;
}

export type Identities = ReturnType<typeof createIdentities>;

/**
 * Creates the memory of the pills in flight and the last ones acknowledged, at most `rememberMax`,
 * in two halves of which the older is dropped as a whole: a map with a deletion for each insertion
 * would rehash completely again and again.
 */
export function createIdentities(rememberMax: number) {
  let current = new Map<string, KnownPill>();
  let previous = new Map<string, KnownPill>();
  const settle = (known: KnownPill, isStored: boolean) => {
    const waiters = known.waiters ?? [];
    known.waiters = undefined;
    for (const waiter of waiters) waiter(isStored);
  };
  return {
    find: (identity: string) => current.get(identity) ?? previous.get(identity),
    /** Registers a pill as in flight. */
    claim(identity: string, pill: Pill, partition: number): KnownPill {
      // Far fewer pills than a half are in flight, so the dropped half never holds one.
      if (current.size >= rememberMax / 2) {
        previous = current;
        current = new Map();
      }
      const known = { identity, pill, partition, offset: -1, waiters: undefined };
      current.set(identity, known);
      return known;
    },
    acknowledge(known: KnownPill, offset: number): void {
      known.offset = offset;
      settle(known, true);
    },
    /** Forgets a pill that was not acknowledged. */
    release(known: KnownPill): void {
      if (current.get(known.identity) === known) current.delete(known.identity);
      else if (previous.get(known.identity) === known) previous.delete(known.identity);
      settle(known, false);
    },
    size: () => current.size + previous.size,
  };
}

/** Waits until a pill in flight settles. @returns whether the log acknowledged the pill */
export function whenSettled(known: KnownPill): Promise<boolean> {
  return new Promise((resolve) => {
    known.waiters ??= [];
    known.waiters.push(resolve);
  });
}
