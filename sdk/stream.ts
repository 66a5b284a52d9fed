import type { PilloleError } from './error.ts';
import type { Drain, Heartbeat, Quiet, StatusFrame, StreamFilter, StreamMode } from './frames.ts';
import type { StreamItem } from './items.ts';
import type { ItemEvents } from './outlet.ts';
import type { Opened } from './session.ts';
import type { Resume } from './subscribe.ts';

export const STREAM_LIMITS = {
  /** Pills that wait for the iterator; those of one read of the socket may come on top. */
  bufferMax: 10_000,
  reconnectFirstMs: 500,
  reconnectMaxMs: 30_000,
  /** A connection that lasted so long lets the back-off begin anew. */
  stableMs: 5_000,
  /** Attempts in a row that never opened, after which an error says so; and so many later again. */
  unopenedTold: 4,
} as const;

export interface StreamOptions {
  /** Symbols, or `*` for all. */
  readonly symbols: string | readonly string[];
  /** `all` (default): every pill. `latest`: the newest per symbol when it goes too fast. */
  readonly mode?: StreamMode;
  readonly filter?: StreamFilter;
  /** Begin with the newest pill of each symbol; true by default. */
  readonly snapshot?: boolean;
  /** Also what was received over the backfill age (60 s) after its timestamp; false by default. */
  readonly backfill?: boolean;
  /** Go on from a position that was kept, or from a receive time. */
  readonly resume?: Resume;
  /** Ask history for what is missing; true by default. Fills that the server offers are free. */
  readonly fillGaps?: boolean;
  /** Pills that may wait for the iterator; 10,000 by default. */
  readonly bufferMax?: number;
}

export interface Reconnecting {
  /** 1 for the first attempt after a connection that lasted. */
  readonly attempt: number;
  /** ms until it. */
  readonly delayMs: number;
  /** Why the connection ended. */
  readonly error: PilloleError;
}

export interface StreamEvents extends ItemEvents {
  /** A connection is live: what was missed is handed over, new pills follow. */
  open: Opened;
  heartbeat: Heartbeat;
  /** Alive, and nothing to say: a market that is closed, a generator that is silent. */
  quiet: Quiet;
  /** A part of the platform went away or came back. */
  status: StatusFrame;
  /** Not a sign of life for two heartbeats: this connection is given up for another. */
  dead: { readonly silentMs: number };
  /** The server stops soon, and closes; the stream comes back by itself. */
  drain: Drain;
  /** Every error frame, every refused symbol, and what ends the stream. */
  error: PilloleError;
  reconnecting: Reconnecting;
  /** It is over; with the error that ended it, unless `close()` did. */
  closed: { readonly error: PilloleError | undefined; readonly position: string | undefined };
}

/**
 * A subscription that lives over connections. It begins at once; items wait until there is a
 * listener of them or an iterator. The iterator ends with `close()`, and throws what ended it else.
 */
export interface Stream extends AsyncIterable<StreamItem, undefined> {
  /** @returns what takes the listener away again */
  on<K extends keyof StreamEvents>(
    event: K,
    listener: (value: StreamEvents[K]) => void,
  ): () => void;
  /**
   * All up to here was handed over: to the iterator, else to the listeners. Keep it after you have
   * acted; `resume` goes on from there. undefined until the first connection is live.
   */
  readonly position: string | undefined;
  readonly state: 'connecting' | 'live' | 'waiting' | 'closed';
  close(): void;
}
