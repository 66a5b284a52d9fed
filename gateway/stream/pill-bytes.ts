import type { EffectivePill } from '../../lib/order/judge.ts';
import type { Pill } from '../../schemas/pill.ts';
import { formatCursor } from '../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../schemas/timestamp.ts';

/** A pill encoded once; all sockets that get it share the bytes. */
export interface PillBytes {
  readonly symbol: string;
  readonly partition: number;
  readonly offset: number;
  /** First offset of the symbol that it stands for; lower where older ones were left out. */
  readonly firstOffset: number;
  readonly late: boolean;
  readonly receivedAt: Micros;
  /** The JSON object, as it stands in `pills` and `snapshot` frames. */
  readonly body: Buffer;
}

/** A pill for those who follow `prev`, and for those who asked for backfill, whose prev is null. */
export interface EncodedPill {
  readonly live: PillBytes;
  readonly withBackfill: PillBytes;
}

const PILL_HEAD = Buffer.from('{"type":"pill",');
const PILLS_TAIL = Buffer.from(']}');
const COMMA = Buffer.from(',');

/** The six fields of the sender and the receive time, as they leave in every channel. */
export function pillFields(pill: Pill, receivedAt: Micros): string {
  // The symbol's alphabet needs no escape; String() of a finite number is its JSON form.
  return (
    `"id":${JSON.stringify(pill.id)},"timestamp":"${formatTimestamp(pill.timestamp)}",` +
    `"symbol":"${pill.symbol}","gross_spread_percent":${pill.gross_spread_percent},` +
    `"market_state":${JSON.stringify(pill.market_state)},"confidence":${pill.confidence},` +
    `"received_at":"${formatTimestamp(receivedAt)}"`
  );
}

/** Encodes a pill with effect; the flags stand there only when set. */
export function encodePill(pill: EffectivePill): EncodedPill {
  const { symbol, partition, offset, late, backfill, received_at: receivedAt } = pill;
  const cursor = formatCursor(partition, offset);
  const flags = `${late ? ',"late":true' : ''}${backfill ? ',"backfill":true' : ''}`;
  const rest = `${pillFields(pill, receivedAt)}${flags}}`;
  const encode = (prev: string): PillBytes => {
    const body = Buffer.from(`{"cursor":"${cursor}","prev":${prev},${rest}`);
    return { symbol, partition, offset, firstOffset: offset, late, receivedAt, body };
  };
  const withBackfill = encode('null');
  if (pill.prev === null) return { live: withBackfill, withBackfill };
  return { live: encode(`"${formatCursor(partition, pill.prev)}"`), withBackfill };
}

/** The same pill with the number of pills of its symbol that were left out before it. */
export function withSkipped(pill: PillBytes, skipped: number, firstOffset: number): PillBytes {
  const flag = Buffer.from(`,"skipped":${skipped}}`);
  return { ...pill, firstOffset, body: Buffer.concat([pill.body.subarray(0, -1), flag]) };
}

const REPLAYED = Buffer.from(',"replayed":true}');

/** The same pill as a part of a replay. */
export function withReplayed(pill: PillBytes): PillBytes {
  return { ...pill, body: Buffer.concat([pill.body.subarray(0, -1), REPLAYED]) };
}

/** A frame and the pills in it. */
export interface PillFrame {
  readonly bytes: Buffer;
  readonly pills: readonly PillBytes[];
}

/**
 * Joins pills into as few frames as the size allows: `pill` for one alone, else `pills`.
 * Bytes are copied, nothing is encoded again.
 */
export function framePills(
  pills: readonly PillBytes[],
  sentAt: string,
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
    frames.push({ bytes: frameOf(part, sentAt), pills: part });
    from = until;
  }
  return frames;
}

function frameOf(pills: readonly PillBytes[], sentAt: string): Buffer {
  if (pills.length === 1) {
    const { body } = pills[0]!;
    const tail = Buffer.from(`,"sent_at":"${sentAt}"}`);
    return Buffer.concat([PILL_HEAD, body.subarray(1, -1), tail]);
  }
  const parts: Buffer[] = [Buffer.from(`{"type":"pills","sent_at":"${sentAt}","pills":[`)];
  for (const { body } of pills) parts.push(body, COMMA);
  parts[parts.length - 1] = PILLS_TAIL;
  return Buffer.concat(parts);
}
