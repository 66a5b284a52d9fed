import type { Micros } from '../../../schemas/timestamp.ts';
import type { Limits } from '../limits.ts';
import { framePills, type PillBytes, withSkipped } from './pill-bytes.ts';

/** Results of a uWS send: sent; buffered and on its way. Otherwise the frame was dropped. */
const SENT = 1;
const BUFFERED = 0;

/** The part of a socket that the outbox needs. */
export interface Wire {
  send(bytes: Uint8Array): number;
  /** Bytes buffered inside the socket. */
  buffered(): number;
}

/** Frames built one by one when there is room for them, such as a long snapshot. */
export interface FrameSource {
  /** @returns the next frame, or undefined after the last. */
  next(): Buffer | undefined;
  /** Bytes that it counts as while queued. */
  readonly heldBytes: number;
  /** Called when the last frame is sent, or when no more frames will be sent. */
  readonly release?: (() => void) | undefined;
}

interface OutboxOptions {
  readonly wire: Wire;
  readonly limits: Pick<
    Limits,
    'queueBytesMax' | 'heldSymbolBytes' | 'frameOutBytesMax' | 'snapshotFramesPerTurn'
  >;
  /** For `sent_at` of frames that are built here. */
  readonly nowMicros: () => Micros;
  readonly nowMs: () => number;
  /** Runs an action in a later turn of the event loop. */
  readonly later: (action: () => void) => void;
}

interface Entry {
  readonly frame: Buffer | undefined;
  readonly source: FrameSource | undefined;
  readonly pills: readonly PillBytes[];
  readonly bytes: number;
  readonly sinceMs: number;
}

/** The newest pill of a symbol that a slow `latest` reader has not got yet. */
interface HeldPill {
  pill: PillBytes;
  /** Pills of the symbol left out since the last one that was sent. */
  skipped: number;
  /** Offset of the first pill that was held back. */
  readonly firstOffset: number;
}

const NO_PILLS: readonly PillBytes[] = [];

/**
 * The send queue of one connection above uWS, bounded in bytes. Frames leave in order, followed by
 * the held pills of `latest` subscriptions. The outbox never drops silently: over the bound it
 * reports `overflowed`, and its owner ends the connection.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  #entries: Entry[] = [];
  #head = 0;
  #held: Map<string, HeldPill> | undefined;
  #bytes = 0;
  #blockedSinceMs: number | undefined;
  #continues = false;
  #dead = false;
  /** The socket dropped a frame: no frame may follow it. */
  broken = false;
  /** Pills sent, and pills left out by `latest` mode, since the connection opened. */
  pillsSent = 0;
  pillsSkipped = 0;
  framesSent = 0;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Nothing is queued: a pushed frame goes straight to the socket. */
  get isFlowing(): boolean {
    const isEmpty = this.#head === this.#entries.length && !this.holdsPills;
    return this.#blockedSinceMs === undefined && isEmpty && !this.#dead;
  }

  /** Bytes in this queue. */
  get queueBytes(): number {
    return this.#bytes + (this.#held?.size ?? 0) * this.#options.limits.heldSymbolBytes;
  }

  get holdsPills(): boolean {
    return (this.#held?.size ?? 0) > 0;
  }

  /** The queue exceeds its bound: the owner must end the connection now. */
  get overflowed(): boolean {
    return this.queueBytes > this.#options.limits.queueBytesMax;
  }

  /** Age of the oldest entry, in ms. */
  queueMs(nowMs: number): number {
    const since = this.#entries[this.#head]?.sinceMs ?? this.#blockedSinceMs;
    return since === undefined ? 0 : Math.max(0, Math.round(nowMs - since));
  }

  /** Whether a replay or a snapshot is not completely sent. */
  get holdsSource(): boolean {
    for (let at = this.#head; at < this.#entries.length; at += 1) {
      if (this.#entries[at]!.source !== undefined) return true;
    }
    return false;
  }

  /** Sends a frame after all queued frames. @param pills the pills in the frame */
  push(frame: Buffer, pills: readonly PillBytes[] = NO_PILLS): void {
    if (this.#dead) return;
    this.pillsSent += pills.length;
    if (this.isFlowing) this.#send(frame);
    else this.#enqueue(frame, undefined, pills, frame.length);
  }

  /**
   * Sends the frames of a source after all queued frames, one by one as there is room.
   * @param pills the number of new pills in them
   */
  pushSource(source: FrameSource, pills = 0): void {
    if (this.#dead) source.release?.();
    if (this.#dead) return;
    this.pillsSent += pills;
    this.#enqueue(undefined, source, NO_PILLS, source.heldBytes);
    this.#pump();
  }

  /** Holds back a pill of a `latest` subscription until there is room; a newer one replaces it. */
  hold(pill: PillBytes): void {
    if (this.#dead) return;
    this.#held ??= new Map();
    const known = this.#held.get(pill.symbol);
    if (known === undefined) {
      this.#held.set(pill.symbol, { pill, skipped: 0, firstOffset: pill.offset });
      return;
    }
    known.pill = pill;
    known.skipped += 1;
    this.pillsSkipped += 1;
  }

  /** Moves held pills into the queue, so that the next pushed frame follows them. */
  settle(): void {
    this.#queueHeld(Number.POSITIVE_INFINITY);
  }

  /** The socket has room again. */
  drained(): void {
    if (this.#dead || this.#options.wire.buffered() > 0) return;
    this.#blockedSinceMs = undefined;
    this.#pump();
  }

  /**
   * Lowers `offsets` to a position that holds for this connection: every matching pill up to and
   * including it was sent, or replaced by a newer pill that was sent.
   * @param queued whether queued frames count as not sent: true if the queue will be dropped, false
   *   for a position in a frame that is queued behind them
   */
  lower(offsets: Map<number, number>, queued: boolean): void {
    const miss = (partition: number, offset: number) => {
      const known = offsets.get(partition);
      if (known === undefined || offset > known) return;
      if (offset === 0) offsets.delete(partition);
      else offsets.set(partition, offset - 1);
    };
    if (queued) {
      for (let at = this.#head; at < this.#entries.length; at += 1) {
        const { pills } = this.#entries[at]!;
        for (const { partition, firstOffset } of pills) miss(partition, firstOffset);
      }
    }
    for (const { pill, firstOffset } of this.#held?.values() ?? []) {
      miss(pill.partition, firstOffset);
    }
  }

  /** Sends a last frame ahead of the queue, which is dropped. */
  finish(frame: Buffer): void {
    if (this.#dead) return;
    this.#send(frame);
    this.close();
  }

  /** Stops sending, and frees the queue. */
  close(): void {
    this.#dead = true;
    for (const { source } of this.#entries.slice(this.#head)) source?.release?.();
    this.#entries = [];
    this.#head = 0;
    this.#held = undefined;
    this.#bytes = 0;
  }

  #enqueue(
    frame: Buffer | undefined,
    source: FrameSource | undefined,
    pills: readonly PillBytes[],
    bytes: number,
  ): void {
    this.#entries.push({ frame, source, pills, bytes, sinceMs: this.#options.nowMs() });
    this.#bytes += bytes;
  }

  #send(frame: Buffer): void {
    const result = this.#options.wire.send(frame);
    this.framesSent += 1;
    if (result === SENT) return;
    this.#blockedSinceMs ??= this.#options.nowMs();
    if (result === BUFFERED) return;
    this.broken = true;
    this.close();
  }

  #pump(): void {
    let sourced = 0;
    while (!this.#dead && this.#blockedSinceMs === undefined) {
      const entry = this.#entries[this.#head];
      if (entry === undefined) {
        if (!this.#queueHeld(this.#options.limits.frameOutBytesMax)) return;
      } else if (entry.frame !== undefined) {
        this.#pop(entry);
        this.#send(entry.frame);
      } else if (sourced === this.#options.limits.snapshotFramesPerTurn) {
        this.#continueLater();
        return;
      } else {
        const frame = entry.source?.next();
        if (frame === undefined) this.#pop(entry);
        else {
          sourced += 1;
          this.#send(frame);
        }
      }
    }
  }

  /** Moves some held pills into the queue. @returns false if none is held */
  #queueHeld(bytesMax: number): boolean {
    if (this.#held === undefined || this.#held.size === 0) return false;
    const pills: PillBytes[] = [];
    let bytes = 0;
    for (const [symbol, { pill, skipped, firstOffset }] of this.#held) {
      bytes += pill.body.length + 32;
      if (bytes > bytesMax && pills.length > 0) break;
      pills.push(skipped > 0 ? withSkipped(pill, skipped, firstOffset) : pill);
      this.#held.delete(symbol);
    }
    const { nowMicros, limits } = this.#options;
    for (const frame of framePills(pills, nowMicros(), limits.frameOutBytesMax)) {
      this.pillsSent += frame.pills.length;
      this.#enqueue(frame.bytes, undefined, frame.pills, frame.bytes.length);
    }
    return true;
  }

  #pop(entry: Entry): void {
    entry.source?.release?.();
    this.#bytes -= entry.bytes;
    this.#head += 1;
    if (this.#head === this.#entries.length) {
      this.#entries = [];
      this.#head = 0;
    } else if (this.#head > 1_024) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
  }

  #continueLater(): void {
    if (this.#continues) return;
    this.#continues = true;
    this.#options.later(() => {
      this.#continues = false;
      this.#pump();
    });
  }
}
