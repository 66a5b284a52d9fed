import { type HandshakeShape, handshakeText, STREAM_PATH } from './raw-client.ts';
import type { Random } from './seeded-random.ts';
import { closeFrame, encodeFrame, type FrameShape, OPCODE } from './wire.ts';

const LENGTHS = [0n, 1n, 125n, 126n, 127n, 4_096n, 4_097n, 65_535n, 65_536n, 1n << 32n, 1n << 63n];
const CODES = [
  0, 999, 1000, 1001, 1002, 1004, 1005, 1006, 1015, 2999, 3000, 4000, 4999, 5000, 65535,
];

/** A valid text message, whole or in fragments with control frames in between. */
export function spreadText(payload: Buffer, random: Random): Buffer[] {
  const frames: Buffer[] = [];
  let at = 0;
  for (let parts = random.chance(0.7) ? 1 : 2 + random.below(5); parts > 0; parts -= 1) {
    const until = parts === 1 ? payload.length : at + random.below(payload.length - at + 1);
    const opcode = frames.length === 0 ? OPCODE.text : OPCODE.continuation;
    const part = payload.subarray(at, until);
    frames.push(encodeFrame({ opcode, payload: part, fin: parts === 1, mask: random.bytes(4) }));
    at = until;
    if (parts > 1 && random.chance(0.3)) {
      frames.push(encodeFrame({ opcode: OPCODE.pong, payload: random.bytes(random.below(126)) }));
    }
  }
  return frames;
}

/** A frame with a changed header, which RFC 6455 mostly forbids. */
export function mutateFrame(payload: Buffer, random: Random): Buffer {
  const shape: FrameShape = { opcode: OPCODE.text, payload, mask: random.bytes(4) };
  switch (random.below(10)) {
    case 0:
      return encodeFrame({ ...shape, opcode: random.below(16) });
    case 1:
      return encodeFrame({ ...shape, rsv: 1 + random.below(7) });
    case 2:
      return encodeFrame({ ...shape, mask: null });
    case 3:
      return encodeFrame({ ...shape, claimedLength: random.pick(LENGTHS), lengthBytes: 8 });
    case 4:
      return encodeFrame({ ...shape, lengthBytes: random.pick([2, 8]) });
    case 5: {
      const opcode = random.pick([OPCODE.close, OPCODE.ping, OPCODE.pong]);
      return encodeFrame({
        opcode,
        fin: random.chance(0.5),
        payload: random.bytes(random.below(200)),
      });
    }
    case 6:
      return encodeFrame({ ...shape, fin: false, opcode: random.pick([0, 1, 2]) });
    case 7:
      return closeFrame(random.pick(CODES), random.bytes(random.below(60)).toString('latin1'));
    case 8:
      return random.bytes(1 + random.below(64));
    default:
      return encodeFrame(shape).subarray(0, random.below(payload.length + 6));
  }
}

const ODD_HEADERS = [
  ...['', ' ', '13', '8', 'websocket', 'h2c', 'Upgrade', 'keep-alive', 'chunked', '5', '-1', '*'],
  ...['pills.v1.json', 'permessage-deflate', 'https://evil.example', 'null', 'pil_live_x', ',,,'],
  ...['x'.repeat(500), 'x'.repeat(3_900), 'x'.repeat(5_000), '\t', '\xff\xfe', '\0', '%00', '"'],
];
const NAMES = [
  ...['Host', 'Upgrade', 'Connection', 'Sec-WebSocket-Key', 'Sec-WebSocket-Version', 'Origin'],
  ...['Sec-WebSocket-Protocol', 'Sec-WebSocket-Extensions', 'X-API-Key', 'Content-Length'],
  ...['Transfer-Encoding', 'Cookie', 'X-Forwarded-For', 'x\0y', '', ' ', 'a b', 'É'],
];
const PATHS = [
  ...['/', '', '*', '//', '/api', `${STREAM_PATH}/`, `${STREAM_PATH}?ticket=`, '/health', '/ready'],
  ...[`${STREAM_PATH}?ticket=pit_x&ticket=y`, `${STREAM_PATH}?%`, `${STREAM_PATH}?ticket=%ff`],
  ...[
    '/api/../api/stream',
    '/%61pi/stream',
    `${STREAM_PATH}#x`,
    'http://x/',
    `/${'x'.repeat(3_000)}`,
  ],
];
const METHODS = [
  'GET',
  'POST',
  'PUT',
  'HEAD',
  'OPTIONS',
  'CONNECT',
  'TRACE',
  'PRI',
  'get',
  '',
  'G ET',
];
const VERSIONS = [
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'HTTP/0.9',
  'http/1.1',
  'HTTP/1.1 ',
  '',
  'ICY',
];

/** A handshake with one to three changes. */
export function mutateHandshake(valid: HandshakeShape, random: Random): Buffer {
  let shape: HandshakeShape = valid;
  for (let left = 1 + random.below(3); left > 0; left -= 1) {
    switch (random.below(6)) {
      case 0:
        shape = { ...shape, method: random.pick(METHODS) };
        break;
      case 1:
        shape = { ...shape, path: random.pick(PATHS) };
        break;
      case 2:
        shape = { ...shape, version: random.pick(VERSIONS) };
        break;
      default: {
        const value = random.chance(0.3) ? null : random.pick(ODD_HEADERS);
        shape = { ...shape, headers: { ...shape.headers, [random.pick(NAMES)]: value } };
      }
    }
  }
  const bytes = Buffer.from(handshakeText(shape), 'latin1');
  if (random.chance(0.8)) return bytes;
  const at = random.below(bytes.length);
  if (random.chance(0.3)) return bytes.subarray(0, at);
  return Buffer.concat([
    bytes.subarray(0, at),
    random.bytes(1 + random.below(6)),
    bytes.subarray(at),
  ]);
}
