import type { PilloleError } from './error.ts';
import type { Pill, SnapshotPill } from './pill.ts';

export type PillItem = { readonly type: 'pill' } & Pill;

/** The state that pills go on from. It may come in parts; `last` is said by the last one. */
export interface SnapshotItem {
  readonly type: 'snapshot';
  readonly pills: readonly SnapshotPill[];
  readonly last: boolean;
  readonly position: string;
}

/** Pills are missing, or were and have just been handed over, marked `replayed`. */
export interface GapItem {
  readonly type: 'gap';
  /** `*`: of any symbol that was asked for. */
  readonly symbols: readonly string[];
  /** Missing from after this cursor; null: not known. */
  readonly after: string | null;
  readonly until: string | null;
  /** The server's reason, or `prev_broken`: this client saw it by itself. */
  readonly reason: string;
  /** True: all of them were handed over before this. */
  readonly filled: boolean;
  /** How many were. */
  readonly pills: number;
  /** Why it was not filled. */
  readonly error: PilloleError | undefined;
}

/** What a stream hands over, in the order it came. */
export type StreamItem = PillItem | SnapshotItem | GapItem;
