import type { Pill } from '../../../schemas/pill.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import type { Codec } from './codec.ts';

const PILL_HEAD = Buffer.from('{"type":"pill",');
const PILLS_TAIL = Buffer.from(']}');
const COMMA = Buffer.from(',');
const REPLAYED = Buffer.from(',"replayed":true}');

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

/** JSON text: `pill` for one alone, else `pills`. The flags stand there only when set. */
export const JSON_CODEC: Codec = {
  name: 'json',
  encode(pill, prevOffset) {
    const { partition, offset, late, backfill, received_at: receivedAt } = pill;
    const prev = prevOffset === null ? 'null' : `"${formatCursor(partition, prevOffset)}"`;
    const flags = `${late ? ',"late":true' : ''}${backfill ? ',"backfill":true' : ''}`;
    const cursor = formatCursor(partition, offset);
    return Buffer.from(
      `{"cursor":"${cursor}","prev":${prev},${pillFields(pill, receivedAt)}${flags}}`,
    );
  },
  withSkipped: (body, skipped) => withFlag(body, Buffer.from(`,"skipped":${skipped}}`)),
  withReplayed: (body) => withFlag(body, REPLAYED),
  frame(bodies, sentAt) {
    const sent = formatTimestamp(sentAt);
    if (bodies.length === 1) {
      const { body } = bodies[0]!;
      const tail = Buffer.from(`,"sent_at":"${sent}"}`);
      return Buffer.concat([PILL_HEAD, body.subarray(1, -1), tail]);
    }
    const parts: Buffer[] = [Buffer.from(`{"type":"pills","sent_at":"${sent}","pills":[`)];
    for (const { body } of bodies) parts.push(body, COMMA);
    parts[parts.length - 1] = PILLS_TAIL;
    return Buffer.concat(parts);
  },
};

function withFlag(body: Buffer, flag: Buffer): Buffer {
  return Buffer.concat([body.subarray(0, -1), flag]);
}
