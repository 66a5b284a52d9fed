import { identityOf, isSameContent, type Pill, type PillContent } from '../../schemas/pill.ts';

/**
 * Remembers the identities of the last offsets of one partition. A decision depends only on the last `size` offsets, so a process that starts
 * at offset o decides like all others once it has read from o − size.
 * @param size in offsets; 32,768 unless the topic settings differ
 * @param compareContent whether to keep contents, for `conflict`; about 250 bytes per identity
 */
export function createRepeatWindow(size: number, compareContent: boolean) {
  /**
   * By identity; `content` is the content of its first record in the chain, with which later
   * records are compared.
   */
  const entries = new Map<string, { offset: number; readonly content: PillContent | undefined }>();
  // One slot per offset with its identity, so that the entry can be removed with the offset.
  const slotKeys: (string | undefined)[] = new Array(size);
  const slotOffsets = new Float64Array(size).fill(-1);
  let evictedUntil = -1;

  const evictBefore = (offset: number) => {
    const from = Math.max(evictedUntil + 1, 0);
    const until = offset - size - 1; // the last offset that is out of the window
    if (until < from) return;
    // After a hole longer than the window, one round over the slots reaches all expired ones.
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
    /** Number of identities in the window; never more than its size. */
    get count() {
      return entries.size;
    },
    /**
     * Adds the valid record at `offset` (ascending), itself a repeat or not.
     * @returns `repeat` when one of the previous `size` offsets has the same identity, `conflict` when
     *   its content differs, else `first`
     */
    observe(pill: Pill, offset: number): 'first' | 'repeat' | 'conflict' {
      evictBefore(offset);
      const key = identityOf(pill);
      const slot = offset % size;
      const known = entries.get(key);
      // The slot still holds offset − size, which is inside the window only for this record.
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

// Not the record itself, because a direct producer decides its size.
function contentOf(pill: Pill): PillContent {
  const { timestamp, gross_spread_percent, market_state, confidence } = pill;
  return { timestamp, gross_spread_percent, market_state, confidence };
}
