import type { Pill, PillContent } from '../../schemas/pill.ts';

/** A pill that this process has sent to the log. */
export interface KnownPill {
  readonly pill: PillContent;
  /** Position in the log; the offset is -1 until the log acknowledges. */
  readonly partition: number;
  readonly offset: number;
}

/** A pill in flight. */
export interface ClaimedPill extends KnownPill {
  readonly identity: string;
  readonly pill: Pill;
  offset: number;
  /** Each is called once, with whether the log acknowledged the pill. */
  waiters: ((isStored: boolean) => void)[] | undefined;
}

export type Identities = ReturnType<typeof createIdentities>;

/**
 * Creates the memory of the pills in flight, and of the last `rememberMax` acknowledged ones, in two
 * halves of which the older is dropped as a whole: a map with a deletion for each insertion would
 * rehash completely again and again.
 */
export function createIdentities(rememberMax: number) {
  const inFlight = new Map<string, ClaimedPill>();
  let current = createHalf(Math.ceil(rememberMax / 2));
  let previous = createHalf(Math.ceil(rememberMax / 2));
  const settle = (claimed: ClaimedPill, isStored: boolean) => {
    // After a failure, another pill of this identity may be in flight.
    if (inFlight.get(claimed.identity) === claimed) inFlight.delete(claimed.identity);
    const waiters = claimed.waiters ?? [];
    claimed.waiters = undefined;
    for (const waiter of waiters) waiter(isStored);
  };
  return {
    find: (identity: string): ClaimedPill | KnownPill | undefined =>
      inFlight.get(identity) ?? current.find(identity) ?? previous.find(identity),
    /** Registers a pill as in flight. */
    claim(identity: string, pill: Pill, partition: number): ClaimedPill {
      const claimed = { identity, pill, partition, offset: -1, waiters: undefined };
      inFlight.set(identity, claimed);
      return claimed;
    },
    acknowledge(claimed: ClaimedPill, offset: number): void {
      claimed.offset = offset;
      if (current.isFull()) {
        [previous, current] = [current, previous];
        current.clear();
      }
      current.add(claimed);
      settle(claimed, true);
    },
    /** Forgets a pill that was not acknowledged. */
    release: (claimed: ClaimedPill): void => settle(claimed, false),
    size: () => inFlight.size + current.size() + previous.size(),
  };
}

/**
 * Acknowledged pills in columns: an object for each pill, some ten with its numbers and texts, is
 * followed by every collection of garbage, whose pauses every pill then waits for.
 */
function createHalf(rowsMax: number) {
  let rows = new Map<string, number>();
  const partitions = new Uint32Array(rowsMax);
  const offsets = new Float64Array(rowsMax);
  const timestamps = new Float64Array(rowsMax);
  const spreads = new Float64Array(rowsMax);
  const confidences = new Float64Array(rowsMax);
  const states = new Array<string>(rowsMax).fill('');
  /** One text for each state: a parsed pill brings a copy of its own. */
  let stateTexts = new Map<string, string>();
  return {
    find(identity: string): KnownPill | undefined {
      const row = rows.get(identity);
      if (row === undefined) return undefined;
      return {
        pill: {
          timestamp: timestamps[row]!,
          gross_spread_percent: spreads[row]!,
          market_state: states[row]!,
          confidence: confidences[row]!,
        },
        partition: partitions[row]!,
        offset: offsets[row]!,
      };
    },
    isFull: () => rows.size >= rowsMax,
    add({ identity, pill, partition, offset }: ClaimedPill): void {
      const row = rows.size;
      rows.set(identity, row);
      partitions[row] = partition;
      offsets[row] = offset;
      timestamps[row] = pill.timestamp;
      spreads[row] = pill.gross_spread_percent;
      confidences[row] = pill.confidence;
      const state = stateTexts.get(pill.market_state) ?? pill.market_state;
      stateTexts.set(state, state);
      states[row] = state;
    },
    clear(): void {
      rows = new Map();
      stateTexts = new Map();
    },
    size: () => rows.size,
  };
}

/** Waits until a pill in flight settles. @returns whether the log acknowledged the pill */
export function whenSettled(claimed: ClaimedPill): Promise<boolean> {
  return new Promise((resolve) => {
    claimed.waiters ??= [];
    claimed.waiters.push(resolve);
  });
}

/** Whether a known pill is still in flight. */
export function isInFlight(known: ClaimedPill | KnownPill): known is ClaimedPill {
  return known.offset < 0;
}
