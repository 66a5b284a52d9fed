import type { PilloleError } from '../error.ts';
import type { Pill, SnapshotPill } from '../rest/responses.ts';
import type {
  Drain,
  Heartbeat,
  Quiet,
  StatusFrame,
  StreamFilter,
  StreamMode,
} from './stream-frames.ts';

export const STREAM_LIMITS = {
  /** Pills that wait for the iterator; pills of one read of the socket may exceed this bound. */
  bufferMax: 10_000,
  reconnectFirstMs: 500,
  reconnectMaxMs: 30_000,
  /** A connection that lasts this long resets the back-off. */
  stableMs: 5_000,
  /** An error is reported after each run of this many consecutive attempts that never opened. */
  unopenedTold: 4,
} as const;

/** Where to begin: a position of any answer, or a receive time (ISO 8601). */
export type Resume = string | { readonly since: string };

export interface StreamOptions {
  /** Symbols, or `*` for all. */
  readonly symbols: string | readonly string[];
  /** `all` (default): every pill. `latest`: only the newest per symbol when pills come too fast. */
  readonly mode?: StreamMode;
  readonly filter?: StreamFilter;
  /** Begin with the newest pill of each symbol; true by default. */
  readonly snapshot?: boolean;
  /** Also pills received later than the backfill age (60 s) after their timestamp; false by default. */
  readonly backfill?: boolean;
  /** Begin at a stored position, or at a receive time. */
  readonly resume?: Resume;
  /** Request missing pills from history; true by default. Fills that the server offers are free. */
  readonly fillGaps?: boolean;
  /**
   * `throw` (default): a refused symbol ends the stream with its code. `deliver`: it is an item
   * `refused`, and the other symbols are streamed; the stream ends if there are none.
   */
  readonly refusedSymbols?: 'throw' | 'deliver';
  /** Pills that may wait for the iterator; 10,000 by default. */
  readonly bufferMax?: number;
  /** Longest wait between attempts in ms, unless the server asks for more; 30,000 by default. */
  readonly reconnectMaxMs?: number;
}

export type PillItem = { readonly type: 'pill' } & Pill;

/** The state before the pills that follow. It may come in parts; `last` marks the last part. */
export interface SnapshotItem {
  readonly type: 'snapshot';
  readonly pills: readonly SnapshotPill[];
  readonly last: boolean;
  readonly position: string;
}

/** Pills are missing, or were missing and have just been delivered, marked `replayed`. */
export interface GapItem {
  readonly type: 'gap';
  /** `*` stands for any symbol of the subscription. */
  readonly symbols: readonly string[];
  /** Pills after this cursor are missing; null if the cursor is unknown. */
  readonly after: string | null;
  readonly until: string | null;
  /** The server's reason, or `prev_broken` if the client detected the gap. */
  readonly reason: string;
  /** True: all missing pills were delivered before this item. */
  readonly filled: boolean;
  /** Number of missing pills that were delivered. */
  readonly pills: number;
  /** Why the gap was not filled. */
  readonly error: PilloleError | undefined;
}

/** A symbol that the platform refused, and that is not streamed; once for each symbol. */
export interface RefusedItem {
  readonly type: 'refused';
  readonly symbol: string;
  /** Why, as in `subscribed.rejected`. */
  readonly code: string;
}

/** The items that a stream delivers, in order of arrival. */
export type StreamItem = PillItem | SnapshotItem | GapItem | RefusedItem;

/** The events that carry items. */
export interface ItemEvents {
  pill: PillItem;
  snapshot: SnapshotItem;
  gap: GapItem;
  refused: RefusedItem;
}

/** The state in which a connection was opened. */
export interface Opened {
  readonly session: string;
  readonly tier: string;
  readonly epoch: string;
  readonly accepted: readonly string[];
  readonly neverSeen: readonly string[];
  /** null: there was nothing to resume. False: a gap may be reported. */
  readonly recovered: boolean | null;
  readonly reason: string | null;
  readonly position: string;
}

export interface Reconnecting {
  /** 1 for the first attempt after a connection that lasted. */
  readonly attempt: number;
  /** ms until the attempt. */
  readonly delayMs: number;
  /** Why the connection ended. */
  readonly error: PilloleError;
}

export interface StreamEvents extends ItemEvents {
  /** A connection is live: missed pills have been delivered, new ones follow. */
  open: Opened;
  heartbeat: Heartbeat;
  /** The connection works, but no pills are expected: a closed market or a silent generator. */
  quiet: Quiet;
  /** A part of the platform became unavailable or available again. */
  status: StatusFrame;
  /** No frame for two heartbeats: the client replaces the connection. */
  dead: { readonly silentMs: number };
  /** The server stops soon and closes the connection; the stream reconnects by itself. */
  drain: Drain;
  /** Every error frame, and the error that ends the stream. */
  error: PilloleError;
  reconnecting: Reconnecting;
  /** The stream has ended, with an error unless `close()` ended it. */
  closed: { readonly error: PilloleError | undefined; readonly position: string | undefined };
}

/**
 * A subscription that survives its connections. It begins at once; items wait until there is an
 * iterator or a listener for them. The iterator ends after `close()` and throws any other end.
 */
export interface Stream extends AsyncIterable<StreamItem, undefined> {
  /** @returns a function that removes the listener */
  on<K extends keyof StreamEvents>(
    event: K,
    listener: (value: StreamEvents[K]) => void,
  ): () => void;
  /**
   * Everything up to here was delivered: to the iterator, otherwise to the listeners. Store it
   * after you have acted; `resume` continues from it. undefined until the first connection is live.
   */
  readonly position: string | undefined;
  readonly state: 'connecting' | 'live' | 'waiting' | 'closed';
  close(): void;
}
