import { type BucketRate, fullBucket, tryTakeToken } from '../../../lib/rate/token-bucket.ts';
import type { Limits } from '../limits.ts';
import type { FatalName } from '../protocol/error-codes.ts';
import type { FrameFault } from '../protocol/frame-fault.ts';
import { type ClientFrame, parseClientFrame } from '../protocol/parse-frame.ts';

type InboxLimits = Pick<
  Limits,
  'framesInPerSecond' | 'framesInBurst' | 'faultsMax' | 'faultForgivenMs' | 'heldFrameBytesMax'
>;

/** The handlers of a client's frames. */
interface InboxHandler {
  answer(frame: ClientFrame): void;
  answerFault(fault: FrameFault): void;
  /** The client exceeded a bound: the connection ends. */
  end(code: FatalName, message: string): void;
}

const TEXT_ONLY: FrameFault = { id: undefined, code: 'text_only', message: 'Send text frames.' };

/** Rate-limits and parses the frames of one client, and queues them while a resume is prepared. */
export class Inbox {
  readonly #limits: InboxLimits;
  readonly #nowMs: () => number;
  readonly #handler: InboxHandler;
  readonly #frameRate: BucketRate;
  readonly #faultRate: BucketRate;
  readonly #frames;
  readonly #faults;
  /** Queued frames; undefined while frames are answered at once. Bounded by rate and `#queuedBytes`. */
  #queued: { readonly frame: ClientFrame; readonly bytes: number }[] | undefined;
  #queuedBytes = 0;

  constructor(limits: InboxLimits, nowMs: () => number, handler: InboxHandler) {
    this.#limits = limits;
    this.#nowMs = nowMs;
    this.#handler = handler;
    this.#frameRate = { perS: limits.framesInPerSecond, burst: limits.framesInBurst };
    this.#faultRate = { perS: 1_000 / limits.faultForgivenMs, burst: limits.faultsMax };
    this.#frames = fullBucket(nowMs());
    this.#faults = fullBucket(nowMs());
  }

  /** Takes a frame. The bytes may be reused after the call. */
  receive(bytes: Buffer, isBinary: boolean): void {
    if (!this.countFrame()) return;
    const parsed = isBinary ? ({ ok: false, fault: TEXT_ONLY } as const) : parseClientFrame(bytes);
    if (!parsed.ok) this.#reject(parsed.fault);
    else if (this.#queued === undefined || parsed.frame.op === 'ping') {
      this.#handler.answer(parsed.frame);
    } else this.#enqueue(parsed.frame, bytes.length);
  }

  /** Counts a frame, including WebSocket pings. @returns false if it exceeded the rate limit. */
  countFrame(): boolean {
    if (tryTakeToken(this.#frames, this.#frameRate, this.#nowMs())) return true;
    const { perS, burst } = this.#frameRate;
    const message = `More than ${perS} frames per second (burst ${burst}). Name several symbols in one frame.`;
    this.#handler.end('too_fast', message);
    return false;
  }

  /** Queues the following frames, except pings, until `release`. */
  hold(): void {
    this.#queued ??= [];
  }

  /** Answers the queued frames, up to a frame that holds again. */
  release(): void {
    const queued = this.#queued ?? [];
    this.#queued = undefined;
    this.#queuedBytes = 0;
    for (let at = 0; at < queued.length; at += 1) {
      this.#handler.answer(queued[at]!.frame);
      if (this.#queued !== undefined) {
        this.#queued = queued.slice(at + 1);
        this.#queuedBytes = this.#queued.reduce((sum, { bytes }) => sum + bytes, 0);
        return;
      }
    }
  }

  #enqueue(frame: ClientFrame, bytes: number): void {
    this.#queuedBytes += bytes;
    this.#queued!.push({ frame, bytes });
    const { heldFrameBytesMax } = this.#limits;
    if (this.#queuedBytes <= heldFrameBytesMax) return;
    const message = `More than ${heldFrameBytesMax} bytes of frames while a resume is prepared; wait for "live".`;
    this.#handler.end('protocol_error', message);
  }

  #reject(fault: FrameFault): void {
    this.#handler.answerFault(fault);
    if (tryTakeToken(this.#faults, this.#faultRate, this.#nowMs())) return;
    this.#handler.end('protocol_error', `More than ${this.#limits.faultsMax} invalid frames.`);
  }
}
