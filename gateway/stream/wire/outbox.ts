import type { Micros } from '../../../schemas/timestamp.ts';
import type { PillBytes } from './pill-bytes.ts';
import { framePills, withSkipped } from './pill-bytes.ts';

/** uWS's answer: 1 sent, 0 buffered and on its way, 2 dropped. */
export type SendResult = number;
export const SENT = 1;
export const BUFFERED = 0;

/** The socket below, as much of it as the outbox needs. */
export interface Wire {
  send(bytes: Uint8Array): SendResult;
  /** Bytes that wait inside the socket. */
  buffered(): number;
}

/** Frames made one by one when there is room for them, such as a long snapshot. */
export interface FrameSource {
  /** @returns the next frame, or undefined after the last. */
  next(): Buffer | undefined;
  /** What it is counted as while it waits. */
  readonly heldBytes: number;
  /** Called when all is sent, or nothing more will be. */
  readonly release?: (() => void) | undefined;
}

export interface OutboxLimits {
  readonly queueBytesMax: number;
  readonly heldSymbolBytes: number;
  readonly frameOutBytesMax: number;
  readonly snapshotFramesPerTurn: number;
}

export interface OutboxOptions {
  readonly wire: Wire;
  readonly limits: OutboxLimits;
  /** For `sent_at` of frames that are joined here. */
  readonly nowMicros: () => Micros;
  readonly nowMs: () => number;
  /** Runs something in a later turn of the event loop. */
  readonly later: (action: () => void) => void;
}

interface Entry {
  readonly frame: Buffer | undefined;
  readonly source: FrameSource | undefined;
  readonly pills: readonly PillBytes[];
  readonly bytes: number;
  readonly sinceMs: number;
}

/** The newest pill of a symbol that a slow reader of `latest` has still to get. */
interface Held {
  pill: PillBytes;
  /** Pills of the symbol left out since the last one sent. */
  skipped: number;
  /** Offset of the first that was held back. */
  readonly firstOffset: number;
}

const NO_PILLS: readonly PillBytes[] = [];

/**
 * Queue of one connection above uWS, bounded in bytes. Frames leave in the order they came; after
 * them the held pills of `latest` subscriptions. It never drops silently: over the bound it says
 * `overflowed`, and its owner ends the connection.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  #entries: Entry[] = [];
  #head = 0;
  #held: Map<string, Held> | undefined;
  #bytes = 0;
  #blockedSinceMs: number | undefined;
  #continues = false;
  #dead = false;
  /** The socket dropped a frame: nothing more may follow it. */
  broken = false;
  /** Pills handed over, and pills left out of `latest`, since the connection began. */
  pillsSent = 0;
  pillsSkipped = 0;
  framesSent = 0;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Nothing waits: what is pushed goes straight to the socket. */
  get isFlowing(): boolean {
    return this.#blockedSinceMs === undefined && this.#isEmpty && !this.#dead;
  }

  get #isEmpty(): boolean {
    return this.#head === this.#entries.length && (this.#held?.size ?? 0) === 0;
  }

  /** Bytes that wait in our queue. */
  get queueBytes(): number {
    return this.#bytes + (this.#held?.size ?? 0) * this.#options.limits.heldSymbolBytes;
  }

  /** More waits than the bound allows: the owner must end the connection now. */
  get overflowed(): boolean {
    return this.queueBytes > this.#options.limits.queueBytesMax;
  }

  /** How long the oldest thing waits. */
  queueMs(nowMs: number): number {
    const since = this.#entries[this.#head]?.sinceMs ?? this.#blockedSinceMs;
    return since === undefined ? 0 : Math.max(0, Math.round(nowMs - since));
  }

  /** Whether a hand-over is under way: its snapshot is not all sent. */
  get holdsSource(): boolean {
    for (let at = this.#head; at < this.#entries.length; at += 1) {
      if (this.#entries[at]!.source !== undefined) return true;
    }
    return false;
  }

  /** Sends a frame, after all that waits. `pills` are those in it. */
  push(frame: Buffer, pills: readonly PillBytes[] = NO_PILLS): void {
    if (this.#dead) return;
    this.pillsSent += pills.length;
    if (this.isFlowing) this.#send(frame);
    else this.#enqueue({ frame, source: undefined, pills, bytes: frame.length });
  }

  /**
   * Sends the frames of a source, one by one as there is room, after all that waits.
   * @param pills how many new pills they hold
   */
  pushSource(source: FrameSource, pills = 0): void {
    if (this.#dead) source.release?.();
    if (this.#dead) return;
    this.pillsSent += pills;
    this.#enqueue({ frame: undefined, source, pills: NO_PILLS, bytes: source.heldBytes });
    this.#pump();
  }

  /** Holds a pill of a `latest` subscription back until there is room; the newest wins. */
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

  /** Moves held pills into the queue, so that what is pushed next comes after them. */
  settle(): void {
    if (this.#held === undefined) return;
    for (const { bytes, pills } of this.#takeHeld(Number.POSITIVE_INFINITY)) {
      this.pillsSent += pills.length;
      this.#enqueue({ frame: bytes, source: undefined, pills, bytes: bytes.length });
    }
  }

  /** The socket has room again. */
  drained(): void {
    if (this.#dead || this.#options.wire.buffered() > 0) return;
    this.#blockedSinceMs = undefined;
    this.#pump();
  }

  /**
   * Lowers `offsets` to a position that is true of this connection: all that matched, up to and
   * including it, was sent or replaced by a newer pill that was sent.
   * @param queued whether what waits in the queue counts as not sent: it does when the queue is
   *   dropped, it does not for a frame that is queued behind it
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

  get holdsPills(): boolean {
    return (this.#held?.size ?? 0) > 0;
  }

  /** Sends a last frame past the queue, which is dropped with all in it. */
  finish(frame: Buffer): void {
    if (this.#dead) return;
    this.#send(frame);
    this.close();
  }

  /** Nothing is sent from now on; the memory is given back. */
  close(): void {
    this.#dead = true;
    for (const { source } of this.#entries.slice(this.#head)) source?.release?.();
    this.#entries = [];
    this.#head = 0;
    this.#held = undefined;
    this.#bytes = 0;
  }

  #enqueue(entry: Omit<Entry, 'sinceMs'>): void {
    this.#entries.push({ ...entry, sinceMs: this.#options.nowMs() });
    this.#bytes += entry.bytes;
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
        if (!this.#pumpHeld()) return;
        continue;
      }
      if (entry.frame !== undefined) {
        this.#pop(entry);
        this.#send(entry.frame);
        continue;
      }
      if (sourced === this.#options.limits.snapshotFramesPerTurn) {
        this.#continueLater();
        return;
      }
      const frame = entry.source?.next();
      if (frame === undefined) this.#pop(entry);
      else {
        sourced += 1;
        this.#send(frame);
      }
    }
  }

  #pumpHeld(): boolean {
    const frames = this.#takeHeld(this.#options.limits.frameOutBytesMax);
    for (const { bytes, pills } of frames) {
      this.pillsSent += pills.length;
      this.#enqueue({ frame: bytes, source: undefined, pills, bytes: bytes.length });
    }
    return frames.length > 0;
  }

  #takeHeld(bytesMax: number) {
    if (this.#held === undefined || this.#held.size === 0) return [];
    const pills: PillBytes[] = [];
    let bytes = 0;
    for (const [symbol, { pill, skipped, firstOffset }] of this.#held) {
      bytes += pill.body.length + 32;
      if (bytes > bytesMax && pills.length > 0) break;
      pills.push(skipped > 0 ? withSkipped(pill, skipped, firstOffset) : pill);
      this.#held.delete(symbol);
    }
    return framePills(pills, this.#options.nowMicros(), this.#options.limits.frameOutBytesMax);
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
