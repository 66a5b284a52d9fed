import type { Pill } from '../../schemas/pill.ts';

/** A pill that this process has sent to the log. */
export interface KnownPill {
  readonly identity: string;
  readonly pill: Pill;
  /** Where it stands; the offset is -1 while the log has not acknowledged. */
  partition: number;
  offset: number;
  /** Told once whether it was acknowledged. */
  waiters: ((isStored: boolean) => void)[] | undefined;
}

/** What this process knows of pills by identity: those in flight, and the last acknowledged. */
export interface Identities {
  find(identity: string): KnownPill | undefined;
  /** Notes a pill as in flight. */
  claim(identity: string, pill: Pill, partition: number): KnownPill;
  acknowledge(known: KnownPill, offset: number): void;
  /** Forgets a pill that was not acknowledged. */
  release(known: KnownPill): void;
  size(): number;
}

/**
 * Creates the memory of at most `rememberMax` pills. Two halves, the older dropped whole: a map
 * with a deletion for each insertion rehashes all of it again and again.
 */
export function createIdentities(rememberMax: number): Identities {
  let current = new Map<string, KnownPill>();
  let previous = new Map<string, KnownPill>();
  const tell = (known: KnownPill, isStored: boolean) => {
    const { waiters } = known;
    if (waiters === undefined) return;
    known.waiters = undefined;
    for (const waiter of waiters) waiter(isStored);
  };
  return {
    find: (identity) => current.get(identity) ?? previous.get(identity),
    claim(identity, pill, partition) {
      // What is in flight is far less than a half, so none of it is ever in the dropped one.
      if (current.size >= rememberMax / 2) {
        previous = current;
        current = new Map();
      }
      const known = { identity, pill, partition, offset: -1, waiters: undefined };
      current.set(identity, known);
      return known;
    },
    acknowledge(known, offset) {
      known.offset = offset;
      tell(known, true);
    },
    release(known) {
      if (current.get(known.identity) === known) current.delete(known.identity);
      else if (previous.get(known.identity) === known) previous.delete(known.identity);
      tell(known, false);
    },
    size: () => current.size + previous.size,
  };
}

/** Resolves when the log has answered for a pill in flight: whether it was acknowledged. */
export function whenSettled(known: KnownPill): Promise<boolean> {
  return new Promise((resolve) => {
    known.waiters ??= [];
    known.waiters.push(resolve);
  });
}
