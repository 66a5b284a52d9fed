import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/**
 * How pills stand on the wire. A body is made once for all sockets that share a codec; frames copy
 * bodies and encode nothing again.
 */
export interface Codec {
  readonly name: 'json' | 'avro';
  /** @param prev offset of the symbol's previous live pill, null where none is told */
  encode(pill: EffectivePill, prev: number | null): Buffer;
  /** The same body, told that `skipped` pills of its symbol were left out before it. */
  withSkipped(body: Buffer, skipped: number): Buffer;
  /** The same body as a part of a replay. */
  withReplayed(body: Buffer): Buffer;
  /** A frame with at least one body. */
  frame(bodies: readonly { readonly body: Buffer }[], sentAt: Micros): Buffer;
}

const BRACE = 0x7b;

/** Text frames are JSON objects; a binary one begins with the marker of Avro, which is no brace. */
export function isBinaryFrame(frame: Uint8Array): boolean {
  return frame[0] !== BRACE;
}
