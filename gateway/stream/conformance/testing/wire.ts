/** Opcodes of RFC 6455 section 5.2; all others are reserved. */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const OPCODES: ReadonlySet<number> = new Set(Object.values(OPCODE));

export interface FrameShape {
  readonly opcode: number;
  readonly payload: Buffer;
  /** By default true. */
  readonly fin?: boolean;
  /** The three reserved bits as a number from 0 to 7. */
  readonly rsv?: number;
  /** null = not masked, which is forbidden for clients. */
  readonly mask?: Buffer | null;
  /** Bytes of the extended length; by default as few as the payload needs. */
  readonly lengthBytes?: 0 | 2 | 8;
  /** A wrong length for the header. */
  readonly claimedLength?: bigint;
}

const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

/** Encodes a client frame, including frames that RFC 6455 forbids. */
export function encodeFrame(shape: FrameShape): Buffer {
  const { opcode, payload, fin = true, rsv = 0, mask = MASK } = shape;
  const length = shape.claimedLength ?? BigInt(payload.length);
  const extended = shape.lengthBytes ?? (length < 126n ? 0 : length < 65_536n ? 2 : 8);
  const head = Buffer.alloc(2 + extended);
  head[0] = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  head[1] = mask === null ? 0 : 0x80;
  if (extended === 0) head[1] |= Number(length & 0x7fn);
  else if (extended === 2) {
    head[1] |= 126;
    head.writeUInt16BE(Number(length & 0xffffn), 2);
  } else {
    head[1] |= 127;
    head.writeBigUInt64BE(BigInt.asUintN(64, length), 2);
  }
  if (mask === null) return Buffer.concat([head, payload]);
  const masked = Buffer.from(payload);
  for (let at = 0; at < masked.length; at += 1) masked[at]! ^= mask[at & 3]!;
  return Buffer.concat([head, mask, masked]);
}

export const textFrame = (text: string | Buffer): Buffer =>
  encodeFrame({ opcode: OPCODE.text, payload: Buffer.from(text) });

/** @param code undefined = a close frame without one */
export function closeFrame(code?: number, reason = ''): Buffer {
  const payload = Buffer.alloc(code === undefined ? 0 : 2);
  if (code !== undefined) payload.writeUInt16BE(code);
  return encodeFrame({
    opcode: OPCODE.close,
    payload: Buffer.concat([payload, Buffer.from(reason)]),
  });
}

/** A text message in fragments. */
export function fragments(...parts: readonly (string | Buffer)[]): Buffer[] {
  return parts.map((part, at) =>
    encodeFrame({
      opcode: at === 0 ? OPCODE.text : OPCODE.continuation,
      fin: at === parts.length - 1,
      payload: Buffer.from(part),
    }),
  );
}

export interface ServerFrame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/**
 * Reads server frames as a strict client does.
 * @throws when a server violates RFC 6455: a mask, a reserved bit or opcode, a fragment, a long
 * control frame. Our frames are never fragmented.
 */
export function createFrameReader(): (chunk: Buffer) => ServerFrame[] {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const frames: ServerFrame[] = [];
    let at = 0;
    for (;;) {
      const frame = readFrame(rest, at);
      if (frame === undefined) break;
      frames.push({ opcode: frame.opcode, payload: rest.subarray(frame.from, frame.until) });
      at = frame.until;
    }
    rest = rest.subarray(at);
    return frames;
  };
}

function readFrame(bytes: Buffer, at: number) {
  if (bytes.length < at + 2) return undefined;
  const [first, second] = [bytes[at]!, bytes[at + 1]!];
  const opcode = first & 0x0f;
  const isControl = opcode >= 8;
  if ((first & 0x70) !== 0) throw new Error('The server set a reserved bit.');
  if (!OPCODES.has(opcode)) throw new Error(`The server sent the reserved opcode ${opcode}.`);
  if ((first & 0x80) === 0 || opcode === OPCODE.continuation) throw new Error('A fragment.');
  if ((second & 0x80) !== 0) throw new Error('The server masked a frame.');
  if (isControl && second > 125) throw new Error('A control frame over 125 bytes.');
  const extended = second === 126 ? 2 : second === 127 ? 8 : 0;
  const from = at + 2 + extended;
  if (bytes.length < from) return undefined;
  const length =
    extended === 0
      ? second
      : extended === 2
        ? bytes.readUInt16BE(at + 2)
        : Number(bytes.readBigUInt64BE(at + 2));
  return bytes.length < from + length ? undefined : { opcode, from, until: from + length };
}
