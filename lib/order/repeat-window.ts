import { identityOf, isSameContent, type Pill, type PillContent } from '../../schemas/pill.ts';

export type Seen = 'first' | 'repeat' | 'conflict';

/** Remembers the identities of the last offsets of one partition. */
export interface RepeatWindow {
  /**
   * Records that a valid record stands at `offset` (ascending), itself a repeat or not.
   * @returns `repeat` when one of the previous `size` offsets holds the identity, `conflict` when
   *   it does with other content, else `first`.
   */
  observe(pill: Pill, offset: number): Seen;
  /** Identities remembered now; never more than the window's size. */
  readonly count: number;
}

interface Entry {
  offset: number;
  /** Content of the identity's first record in the chain, what later ones are held against. */
  readonly content: PillContent | undefined;
}

/**
 * Creates the window. A decision depends on the last `size` offsets alone, so a process that
 * starts at offset o decides like all others once it has read from o − size.
 * @param size offsets; 32,768 unless the topic settings say otherwise
 * @param compareContent whether to keep contents, for `conflict`; about 250 bytes an identity
 */
export function createRepeatWindow(size: number, compareContent: boolean): RepeatWindow {
  const entries = new Map<string, Entry>();
  // One slot an offset: what stood there, so that the entry can go when the offset leaves.
  const slotKeys: (string | undefined)[] = new Array(size);
  const slotOffsets = new Float64Array(size).fill(-1);
  let evictedUntil = -1;

  const evictBefore = (offset: number) => {
    const from = Math.max(evictedUntil + 1, 0);
    const until = offset - size - 1; // the last offset that is out of the window
    if (until < from) return;
    // After a hole longer than the window one round over the slots reaches all that is out.
    const rounds = Math.min(until - from + 1, size);
    for (let at = until - rounds + 1; at <= until; at += 1) {
      const slot = at % size;
      const key = slotKeys[slot];
      const held = slotOffsets[slot]!;
      if (key === undefined || held > until) continue;
      if (entries.get(key)?.offset === held) entries.delete(key);
      slotKeys[slot] = undefined;
    }
    evictedUntil = until;
  };

  return {
    get count() {
      return entries.size;
    },
    observe(pill, offset) {
      evictBefore(offset);
      const key = identityOf(pill);
      const slot = offset % size;
      const known = entries.get(key);
      // The slot still holds offset − size, which is inside the window for this record alone.
      const leaving = slotKeys[slot];
      if (leaving !== undefined && leaving !== key) {
        if (entries.get(leaving)?.offset === slotOffsets[slot]) entries.delete(leaving);
      }
      slotKeys[slot] = key;
      slotOffsets[slot] = offset;
      if (known === undefined) {
        entries.set(key, { offset, content: compareContent ? contentOf(pill) : undefined });
        return 'first';
      }
      known.offset = offset;
      const same = known.content === undefined || isSameContent(known.content, pill);
      return same ? 'repeat' : 'conflict';
    },
  };
}

// Not the record itself: a direct producer decides how large that is.
function contentOf(pill: Pill): PillContent {
  const { timestamp, gross_spread_percent, market_state, confidence } = pill;
  return { timestamp, gross_spread_percent, market_state, confidence };
}
