import type { FatalName } from '../contract/error-codes.ts';
import { type Bucket, take } from '../door/rate.ts';
import { type ClientFrame, type FrameFault, parseFrame } from './protocol.ts';

export interface InboxLimits {
  readonly framesInPerSecond: number;
  readonly framesInBurst: number;
  /** Faulty frames: so many at once, and one more forgiven after each `faultForgivenMs`. */
  readonly faultsMax: number;
  readonly faultForgivenMs: number;
  readonly heldFrameBytesMax: number;
}

/** What becomes of what the client sends. */
export interface Reader {
  answer(frame: ClientFrame): void;
  answerFault(fault: FrameFault): void;
  /** The client broke a bound: the connection ends. */
  end(code: FatalName, message: string): void;
}

const TEXT_ONLY: FrameFault = { id: undefined, code: 'text_only', message: 'Send text frames.' };

/** Frames of one client: paced, parsed, and kept in order while one before them takes its time. */
export class Inbox {
  readonly #limits: InboxLimits;
  readonly #nowMs: () => number;
  readonly #reader: Reader;
  readonly #frames: Bucket;
  readonly #faults: Bucket;
  /** Frames that wait; undefined = none has to. Bounded by the pace and by `#keptBytes`. */
  #kept: { readonly frame: ClientFrame; readonly bytes: number }[] | undefined;
  #keptBytes = 0;

  constructor(limits: InboxLimits, nowMs: () => number, reader: Reader) {
    this.#limits = limits;
    this.#nowMs = nowMs;
    this.#reader = reader;
    this.#frames = { tokens: limits.framesInBurst, atMs: nowMs() };
    this.#faults = { tokens: limits.faultsMax, atMs: nowMs() };
  }

  /** Takes a frame. The bytes may be reused after the call. */
  receive(bytes: Buffer, isBinary: boolean): void {
    if (!this.isPaced()) return;
    const parsed = isBinary ? ({ ok: false, fault: TEXT_ONLY } as const) : parseFrame(bytes);
    if (!parsed.ok) this.#fault(parsed.fault);
    else if (this.#kept === undefined || parsed.frame.op === 'ping') {
      this.#reader.answer(parsed.frame);
    } else this.#keep(parsed.frame, bytes.length);
  }

  /** Counts a frame, one of the WebSocket layer too. @returns false when that was one too many. */
  isPaced(): boolean {
    const { framesInPerSecond, framesInBurst } = this.#limits;
    if (take(this.#frames, framesInPerSecond / 1000, framesInBurst, this.#nowMs())) return true;
    const message = `More than ${framesInPerSecond} frames a second, burst ${framesInBurst}.`;
    this.#reader.end('too_fast', message);
    return false;
  }

  /** Keeps what comes from now on, except pings, until `release`. */
  hold(): void {
    this.#kept ??= [];
  }

  /** Answers what was kept, up to a frame that holds again. */
  release(): void {
    const kept = this.#kept ?? [];
    this.#kept = undefined;
    this.#keptBytes = 0;
    for (let at = 0; at < kept.length; at += 1) {
      this.#reader.answer(kept[at]!.frame);
      if (this.#kept !== undefined) {
        this.#kept = kept.slice(at + 1);
        this.#keptBytes = this.#kept.reduce((sum, { bytes }) => sum + bytes, 0);
        return;
      }
    }
  }

  #keep(frame: ClientFrame, bytes: number): void {
    this.#keptBytes += bytes;
    this.#kept!.push({ frame, bytes });
    const { heldFrameBytesMax } = this.#limits;
    if (this.#keptBytes <= heldFrameBytesMax) return;
    const message = `More than ${heldFrameBytesMax} bytes while a resume is prepared; wait for "live".`;
    this.#reader.end('protocol_error', message);
  }

  #fault(fault: FrameFault): void {
    const { faultsMax, faultForgivenMs } = this.#limits;
    this.#reader.answerFault(fault);
    if (take(this.#faults, 1 / faultForgivenMs, faultsMax, this.#nowMs())) return;
    this.#reader.end('protocol_error', `More than ${faultsMax} faulty frames.`);
  }
}
