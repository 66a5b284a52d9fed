import { publicPillText } from '../../../schemas/public-pill.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { Codec } from './codec.ts';

const PILL_HEAD = Buffer.from('{"type":"pill",');
const PILLS_TAIL = Buffer.from(']}');
const COMMA = Buffer.from(',');
const REPLAYED = Buffer.from(',"replayed":true}');

/** JSON text: `pill` for a single pill, otherwise `pills`. Flags are present only when set. */
export const JSON_CODEC: Codec = {
  name: 'json',
  encode: (pill, prev) => Buffer.from(publicPillText(pill, { prev })),
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
