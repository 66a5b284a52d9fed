import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, closeClients, connect } from '../testing/stream-client.ts';
import { faultOfAnswers } from './testing/expected-answers.ts';
import { closeRawClients, type RawClient } from './testing/raw-client.ts';
import { startTestStream, type TestStream } from './testing/test-stream.ts';
import { closeFrame, encodeFrame, fragments, OPCODE, textFrame } from './testing/wire.ts';

let stream: TestStream;
let other: Client;

beforeAll(async () => {
  stream = await startTestStream();
});

beforeEach(async () => {
  other = await connect(stream.url, { key: stream.key });
  await other.until('welcome');
});

/** After each test another connection must still be served. */
afterEach(async () => {
  other.send({ op: 'ping', id: 'other' });
  expect(await other.until('pong')).toMatchObject({ id: 'other' });
  closeClients();
  closeRawClients();
});

afterAll(async () => {
  await stream?.close();
});

const PING = '{"op":"ping","id":"1"}';
const padded = (bytes: number) => PING.padEnd(bytes, ' ');
const control = (opcode: number, bytes: number, fin = true) =>
  encodeFrame({ opcode, fin, payload: Buffer.alloc(bytes, 'x') });

/** The frames after `welcome`, without heartbeats. */
const answersOf = (client: RawClient) =>
  client.frames
    .slice(1)
    .filter(({ type }) => type !== 'heartbeat')
    .map(({ type, id, code }) => [type, id ?? code]);

/** The server ends TCP without a close frame, as uWS does for violations of RFC 6455. */
const CUT = { code: undefined, reason: '', tcp: 'end' };

describe('a valid message is answered', () => {
  const [head, tail] = [PING.slice(0, 9), PING.slice(9)];
  const [first, last] = fragments(head, tail) as [Buffer, Buffer];
  test.each<[string, Buffer[]]>([
    ['of exactly 4 KiB', [textFrame(padded(4_096))]],
    ['of exactly 4 KiB in fragments', fragments(padded(4_096).slice(0, 3_000), ' '.repeat(1_096))],
    ['in fragments, one of them empty', fragments(head, '', tail)],
    ['in fragments with control frames between', [first, control(10, 7), control(10, 0), last]],
    ['with its length in two bytes', [encodeFrame({ ...text(PING), lengthBytes: 2 })]],
    ['with its length in eight bytes', [encodeFrame({ ...text(PING), lengthBytes: 8 })]],
    ['under a mask of zeros', [encodeFrame({ ...text(PING), mask: Buffer.alloc(4) })]],
  ])('%s', async (_what, frames) => {
    const client = await stream.open();
    client.write(...frames);
    await client.until('pong', () => answersOf(client).length > 0);
    expect(answersOf(client)).toEqual([['pong', '1']]);
    expect(faultOfAnswers(client)).toBeUndefined();
  });

  test('byte by byte', async () => {
    const client = await stream.open();
    for (const byte of textFrame(PING)) client.write(Buffer.of(byte));
    await client.until('pong', () => answersOf(client).length > 0);
    expect(answersOf(client)).toEqual([['pong', '1']]);
  });

  test('two in one segment, in order', async () => {
    const client = await stream.open();
    client.write(textFrame(PING), textFrame('{"op":"ping","id":"2"}'));
    await client.until('two pongs', () => answersOf(client).length > 1);
    expect(answersOf(client)).toEqual([
      ['pong', '1'],
      ['pong', '2'],
    ]);
  });

  test('a character split over fragments is one character', async () => {
    const client = await stream.open();
    const bytes = Buffer.from('{"op":"ping","id":"€"}');
    const at = bytes.indexOf('€') + 1;
    client.write(...fragments(bytes.subarray(0, at), bytes.subarray(at)));
    await client.until('pong', () => answersOf(client).length > 0);
    expect(answersOf(client)).toEqual([['pong', '€']]);
  });
});

describe('an invalid message is answered by an error, and the connection stays open', () => {
  test.each<[string, Buffer, string]>([
    ['binary', encodeFrame({ opcode: OPCODE.binary, payload: Buffer.from(PING) }), 'text_only'],
    ['an empty binary one', control(OPCODE.binary, 0), 'text_only'],
    ['an empty text', textFrame(''), 'json_malformed'],
    ['a byte order mark', textFrame(`\ufeff${PING}`), 'json_malformed'],
    ['4 KiB of brackets', textFrame('['.repeat(4_096)), 'json_malformed'],
  ])('%s: %s', async (_what, frame, code) => {
    const client = await stream.open();
    client.write(frame, textFrame(PING));
    await client.until('two answers', () => answersOf(client).length > 1);
    expect(answersOf(client)).toEqual([
      ['error', code],
      ['pong', '1'],
    ]);
    expect(faultOfAnswers(client)).toBeUndefined();
  });
});

describe('a message over the limit of 4 KiB is refused and closed with 4506', () => {
  test.each<[string, Buffer[]]>([
    ['a frame', [textFrame(padded(4_097))]],
    ['fragments together', fragments(padded(4_000), ' '.repeat(97))],
    ['the largest message that is read', [textFrame(padded(16_384))]],
  ])('%s', async (_what, frames) => {
    const client = await stream.open();
    client.write(...frames);
    expect((await client.ended).code).toBe(4506);
    expect(answersOf(client)).toEqual([['error', 'frame_too_large']]);
  });
});

describe('a violation of RFC 6455 ends the connection without an answer', () => {
  test.each<[string, Buffer[]]>([
    ['a frame over 16 KiB', [textFrame(padded(16_385))]],
    ['fragments over 16 KiB together', fragments(padded(16_000), ' '.repeat(385))],
    [
      'a length of 16 KiB and a byte, nothing sent',
      [encodeFrame({ ...text(''), claimedLength: 16_385n })],
    ],
    ['a length of 2^63', [encodeFrame({ ...text(''), claimedLength: 1n << 63n, lengthBytes: 8 })]],
    ['a ping over 125 bytes', [control(OPCODE.ping, 126)]],
    ['a close over 125 bytes', [control(OPCODE.close, 126)]],
    ['a ping in fragments', [control(OPCODE.ping, 5, false)]],
    ['a close in fragments', [control(OPCODE.close, 2, false)]],
    ['a continuation without a message', [control(OPCODE.continuation, 5)]],
    ['a message inside another', [...fragments('{', '}').slice(0, 1), textFrame(PING)]],
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode): [string, Buffer[]] => [
      `the reserved opcode ${opcode}`,
      [control(opcode, 3)],
    ]),
    ...[1, 2, 4, 7].map((rsv): [string, Buffer[]] => [
      `the reserved bits ${rsv}`,
      [encodeFrame({ ...text(PING), rsv })],
    ]),
    ['a byte that UTF-8 never has', [textFrame(Buffer.from([0x22, 0xff, 0x22]))]],
    ['half a character at the end', [textFrame(Buffer.from([0x22, 0xe2, 0x82]))]],
    ['a surrogate', [textFrame(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))]],
    ['an overlong character', [textFrame(Buffer.from([0x22, 0xc0, 0x80, 0x22]))]],
    ['a wrong byte over two fragments', fragments(Buffer.from([0xe2, 0x82]), Buffer.from([0x22]))],
  ])('%s', async (_what, frames) => {
    const client = await stream.open();
    client.write(...frames);
    expect(await client.ended).toEqual(CUT);
    expect(answersOf(client)).toEqual([]);
    expect(client.controls).toEqual([]);
  });

  test('an unmasked frame is never executed', async () => {
    const client = await stream.open();
    // uWS takes four bytes of the payload as the mask, which yields an invalid frame.
    client.write(encodeFrame({ ...text(PING), mask: null }), Buffer.alloc(4));
    await client.until('an answer', () => answersOf(client).length > 0 || client.socket.closed);
    expect(answersOf(client).filter(([type]) => type === 'pong')).toEqual([]);
  });
});

describe('control frames', () => {
  test.each([0, 1, 125])('a ping of %i bytes comes back as a pong', async (bytes) => {
    const client = await stream.open();
    client.write(control(OPCODE.ping, bytes));
    await client.until('pong', () => client.controls.length > 0);
    expect(client.controls).toEqual([{ opcode: OPCODE.pong, payload: Buffer.alloc(bytes, 'x') }]);
  });

  test('a ping between fragments is answered at once, before the message', async () => {
    const client = await stream.open();
    const [first, last] = fragments('{"op":"ping"', ',"id":"1"}') as [Buffer, Buffer];
    client.write(first, control(OPCODE.ping, 3));
    await client.until('pong', () => client.controls.length > 0);
    expect(answersOf(client)).toEqual([]);
    client.write(last);
    await client.until('the answer', () => answersOf(client).length > 0);
    expect(answersOf(client)).toEqual([['pong', '1']]);
  });

  test('an unsolicited pong is ignored', async () => {
    const client = await stream.open();
    client.write(...Array.from({ length: 50 }, () => control(OPCODE.pong, 5)), textFrame(PING));
    await client.until('the answer', () => answersOf(client).length > 0);
    expect(answersOf(client)).toEqual([['pong', '1']]);
    expect(client.controls).toEqual([]);
  });

  test('pings count as frames: more than the burst end in 4006', async () => {
    const client = await stream.open();
    client.write(...Array.from({ length: 30 }, () => control(OPCODE.ping, 0)));
    expect(await client.ended).toEqual({ code: 4006, reason: 'too_fast', tcp: 'end' });
    expect(answersOf(client)).toEqual([['error', 'too_fast']]);
    expect(faultOfAnswers(client)).toBeUndefined();
  });
});

describe('a close frame', () => {
  test.each([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 4000, 4500, 4999])(
    'with %i is given back',
    async (code) => {
      const client = await stream.open();
      client.write(closeFrame(code, 'bye'));
      expect(await client.ended).toEqual({ code, reason: 'bye', tcp: 'end' });
    },
  );

  test.each([0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535])(
    'with %i, which none may send, is answered by one without a code',
    async (code) => {
      const client = await stream.open();
      client.write(closeFrame(code, 'bye'));
      expect(await client.ended).toEqual({ code: 1005, reason: '', tcp: 'end' });
    },
  );

  test.each<[string, Buffer]>([
    ['without a code', closeFrame()],
    ['of one byte', control(OPCODE.close, 1)],
    ['with a reason that is not UTF-8', control2(Buffer.from([3, 232, 0xff]))],
  ])('%s is answered by one without a code', async (_what, frame) => {
    const client = await stream.open();
    client.write(frame);
    expect(await client.ended).toEqual({ code: 1005, reason: '', tcp: 'end' });
  });

  test('ends the reading: later frames are ignored', async () => {
    const client = await stream.open();
    client.write(closeFrame(1000), textFrame(PING), control(OPCODE.ping, 3));
    expect(await client.ended).toMatchObject({ code: 1000 });
    expect(answersOf(client)).toEqual([]);
    expect(client.controls.map(({ opcode }) => opcode)).toEqual([OPCODE.close]);
  });
});

function text(payload: string) {
  return { opcode: OPCODE.text, payload: Buffer.from(payload) };
}

function control2(payload: Buffer): Buffer {
  return encodeFrame({ opcode: OPCODE.close, payload });
}
