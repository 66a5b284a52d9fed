/** A frame as the socket carried it. */
export interface Frame {
  /** Counts from 1. */
  readonly number: number;
  readonly at: Date;
  readonly way: 'in' | 'out' | 'event';
  /** `type` or `op`; of an event, what happened. */
  readonly name: string;
  /** Cut after 2,000 characters. */
  readonly text: string;
  readonly chars: number;
}

/** Frames that are kept; older ones are forgotten. */
export const FRAMES_MAX = 300;
const TEXT_MAX = 2_000;

/** The newest frames of a socket, in the order of the socket. */
export class FrameLog {
  #frames: Frame[] = [];
  #count = 0;

  /** All frames so far, with the forgotten ones. */
  get count(): number {
    return this.#count;
  }

  /** Oldest first, at most 300. */
  get frames(): readonly Frame[] {
    return this.#frames;
  }

  add(way: Frame['way'], text: string, name = nameOf(text)): void {
    this.#count += 1;
    const frame = { number: this.#count, at: new Date(), way, name };
    this.#frames.push({ ...frame, text: text.slice(0, TEXT_MAX), chars: text.length });
    // In blocks, so that not every frame moves all others.
    if (this.#frames.length >= 2 * FRAMES_MAX) this.#frames = this.#frames.slice(-FRAMES_MAX);
  }
}

function nameOf(text: string): string {
  try {
    const { type, op } = JSON.parse(text) as { readonly type?: unknown; readonly op?: unknown };
    return String(type ?? op ?? '?');
  } catch {
    return '?';
  }
}
