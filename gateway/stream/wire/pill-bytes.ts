import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Codec } from './codec.ts';

/** An encoded pill; all sockets that send it in this form share the bytes. */
export interface PillBytes {
  readonly symbol: string;
  readonly partition: number;
  readonly offset: number;
  /** First offset of the symbol that the bytes represent; lower if older pills were left out. */
  readonly firstOffset: number;
  readonly late: boolean;
  readonly receivedAt: Micros;
  readonly codec: Codec;
  readonly body: Buffer;
}

/**
 * Encodes a pill.
 * @param prev whether the pill carries `prev`: not with backfill, nor for the first of a replay
 */
export function encodePill(pill: EffectivePill, codec: Codec, prev: boolean): PillBytes {
  const { symbol, partition, offset, late, received_at: receivedAt } = pill;
  const body = codec.encode(pill, prev ? pill.prev : null);
  return { symbol, partition, offset, firstOffset: offset, late, receivedAt, codec, body };
}

/** The forms of one pill by codec and `prev`, each encoded on first use. */
export class EncodedPill {
  readonly #pill: EffectivePill;
  readonly #forms: PillBytes[] = [];
  readonly #hasPrev: boolean[] = [];

  constructor(pill: EffectivePill) {
    this.#pill = pill;
  }

  /** @param prev see `encodePill` */
  form(codec: Codec, prev: boolean): PillBytes {
    const hasPrev = prev && this.#pill.prev !== null;
    for (let at = 0; at < this.#forms.length; at += 1) {
      const form = this.#forms[at]!;
      if (form.codec === codec && this.#hasPrev[at] === hasPrev) return form;
    }
    const form = encodePill(this.#pill, codec, hasPrev);
    this.#forms.push(form);
    this.#hasPrev.push(hasPrev);
    return form;
  }
}

/** The same pill with the number of pills of its symbol that were left out before it. */
export function withSkipped(pill: PillBytes, skipped: number, firstOffset: number): PillBytes {
  return { ...pill, firstOffset, body: pill.codec.withSkipped(pill.body, skipped) };
}

/** The same pill, marked as part of a replay. */
export function withReplayed(pill: PillBytes): PillBytes {
  return { ...pill, body: pill.codec.withReplayed(pill.body) };
}

/** A frame and its pills. */
export interface PillFrame {
  readonly bytes: Buffer;
  readonly pills: readonly PillBytes[];
}

/** Joins pills of one codec into as few frames as the size allows, without encoding them again. */
export function framePills(
  pills: readonly PillBytes[],
  sentAt: Micros,
  bytesMax: number,
): PillFrame[] {
  const frames: PillFrame[] = [];
  let from = 0;
  while (from < pills.length) {
    let bytes = 0;
    let until = from;
    while (until < pills.length) {
      bytes += pills[until]!.body.length + 1;
      if (bytes > bytesMax && until > from) break;
      until += 1;
    }
    const part = from === 0 && until === pills.length ? pills : pills.slice(from, until);
    frames.push({ bytes: part[0]!.codec.frame(part, sentAt), pills: part });
    from = until;
  }
  return frames;
}
