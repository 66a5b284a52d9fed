import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/**
 * The encoding of pills. A body is encoded once for all sockets that share a codec; frames copy
 * bodies without encoding them again.
 */
export interface Codec {
  readonly name: 'json' | 'avro';
  /** @param prev offset of the symbol's previous live pill; null leaves the chain open */
  encode(pill: EffectivePill, prev: number | null): Buffer;
  /** The same body with the number of pills of its symbol that were left out before it. */
  withSkipped(body: Buffer, skipped: number): Buffer;
  /** The same body, marked as part of a replay. */
  withReplayed(body: Buffer): Buffer;
  /** A frame of at least one body. */
  frame(bodies: readonly { readonly body: Buffer }[], sentAt: Micros): Buffer;
}

const BRACE = 0x7b;

/** Text frames are JSON objects; binary frames begin with the Avro marker, which is not a brace. */
export function isBinaryFrame(frame: Uint8Array): boolean {
  return frame[0] !== BRACE;
}
